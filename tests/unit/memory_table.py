"""A DynamoDB table in memory: the expressions that the store uses, and no others."""

import copy
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from traindyno.aws.table import Delete, Item, Put, Table, Update, Write

TOKEN = re.compile(r"\s*(<=|>|=|\(|\)|,|\+|[:#]?[A-Za-z_]\w*)")
CLAUSES = ("SET", "ADD", "REMOVE", "DELETE")
COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda left, right: left == right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
}


class MemoryTable(Table):
    """Items by key. What DynamoDB refuses to store is refused here too: floats and empty sets."""

    def __init__(self) -> None:
        self.items: dict[tuple[str, str], dict[str, Any]] = {}
        self._lock = threading.Lock()

    def get(self, key: Item) -> Item | None:
        return copy.deepcopy(self.items.get(_identity(key)))

    def put(self, item: Item, *, condition: str | None = None) -> bool:
        _check(item)
        if not self._holds(item, condition):
            return False
        self.items[_identity(item)] = copy.deepcopy(dict(item))
        return True

    def update(
        self,
        key: Item,
        expression: str,
        *,
        values: Item | None = None,
        names: Mapping[str, str] | None = None,
        condition: str | None = None,
    ) -> Item | None:
        _check(values or {})
        if not self._holds(key, condition, values, names):
            return None
        item = self.items.get(_identity(key), {})
        changed = copy.deepcopy(item) or dict(key)
        _Expression(expression, item, values or {}, names or {}).change(changed)
        self.items[_identity(key)] = changed
        return copy.deepcopy(changed)

    def delete(self, key: Item) -> None:
        self.items.pop(_identity(key), None)

    def write_all(self, writes: Sequence[Write]) -> tuple[int, ...]:
        keys = [_identity(write.item if isinstance(write, Put) else write.key) for write in writes]
        assert len(set(keys)) == len(keys), "DynamoDB takes one write of each item in a transaction"
        with self._lock:
            refused = tuple(
                number for number, write in enumerate(writes) if not self._allows(write)
            )
            for write in () if refused else writes:
                self._write(write)
            return refused

    def _allows(self, write: Write) -> bool:
        match write:
            case Put():
                return self._holds(write.item, write.condition)
            case Delete():
                return self._holds(write.key, write.condition, write.values)
            case Update():
                return self._holds(write.key, write.condition, write.values, write.names)

    def _holds(
        self,
        key: Item,
        condition: str | None,
        values: Item | None = None,
        names: Mapping[str, str] | None = None,
    ) -> bool:
        item = self.items.get(_identity(key), {})
        return condition is None or _Expression(condition, item, values or {}, names or {}).holds()

    def _write(self, write: Write) -> None:
        if isinstance(write, Put):
            self.put(write.item)
        elif isinstance(write, Delete):
            self.delete(write.key)
        else:
            self.update(write.key, write.expression, values=write.values, names=write.names)

    def query(
        self,
        condition: str,
        *,
        values: Item,
        names: Mapping[str, str] | None = None,
        index: str | None = None,
        latest_first: bool = False,
    ) -> Iterator[Item]:
        rows = [
            item
            for item in self.items.values()
            if _Expression(condition, item, values, names or {}).holds()
        ]
        sort_key = "execution_id" if index else "sk"
        return iter(
            copy.deepcopy(sorted(rows, key=lambda item: str(item[sort_key]), reverse=latest_first))
        )


class _Expression:
    """One expression over one item; conditions with a missing attribute don't hold."""

    def __init__(self, text: str, item: Item, values: Item, names: Mapping[str, str]) -> None:
        self._tokens = TOKEN.findall(text)
        assert "".join(self._tokens) == re.sub(r"\s", "", text), f"not understood: {text}"
        self._item = item
        self._values = values
        self._names = names

    def holds(self) -> bool:
        return self._any()

    def change(self, target: dict[str, Any]) -> None:
        while self._tokens:
            clause = self._take()
            assert clause in CLAUSES, f"not understood: {clause}"
            while self._tokens and self._tokens[0] not in CLAUSES:
                getattr(self, f"_{clause.lower()}")(target, self._name(self._take()))
                if self._tokens and self._tokens[0] == ",":
                    self._take()

    def _set(self, target: dict[str, Any], name: str) -> None:
        assert self._take() == "="
        value = self._value()
        while self._tokens and self._tokens[0] == "+":
            self._take()
            value += self._value()
        target[name] = value

    def _add(self, target: dict[str, Any], name: str) -> None:
        value = self._value()
        if isinstance(value, set):
            target[name] = set(target.get(name, set())) | value
        else:
            target[name] = target.get(name, Decimal(0)) + value

    def _remove(self, target: dict[str, Any], name: str) -> None:
        target.pop(name, None)

    def _delete(self, target: dict[str, Any], name: str) -> None:
        left = set(target.get(name, set())) - self._value()
        target.pop(name, None)
        if left:
            target[name] = left

    def _any(self) -> bool:
        holds = self._all()
        while self._tokens and self._tokens[0] == "OR":
            self._take()
            holds = self._all() or holds
        return holds

    def _all(self) -> bool:
        holds = self._term()
        while self._tokens and self._tokens[0] == "AND":
            self._take()
            holds = self._term() and holds
        return holds

    def _term(self) -> bool:
        word = self._take()
        if word == "(":
            holds = self._any()
            assert self._take() == ")"
            return holds
        if self._tokens[0] == "(":
            return self._function(word)
        name = self._name(word)
        compare = COMPARISONS[self._take()]
        value = self._value()
        return name in self._item and compare(self._item[name], value)

    def _function(self, function: str) -> bool:
        self._take()
        name = self._name(self._take())
        argument = None
        if self._tokens[0] == ",":
            self._take()
            argument = self._value()
        assert self._take() == ")"
        match function:
            case "attribute_exists":
                return name in self._item
            case "attribute_not_exists":
                return name not in self._item
            case "begins_with":
                return str(self._item.get(name, "")).startswith(str(argument))
        raise AssertionError(f"not understood: {function}")

    def _value(self) -> Any:
        word = self._take()
        return self._values[word] if word.startswith(":") else self._item[self._name(word)]

    def _name(self, word: str) -> str:
        return self._names[word] if word.startswith("#") else word

    def _take(self) -> str:
        word: str = self._tokens.pop(0)
        return word


def _identity(key: Item) -> tuple[str, str]:
    return key["pk"], key["sk"]


def _check(value: Any) -> None:
    assert not isinstance(value, float), "DynamoDB takes no floats"
    assert value != set(), "DynamoDB takes no empty sets"
    if isinstance(value, Mapping):
        for inner in value.values():
            _check(inner)
