"""Options that exclude or need each other: no option of the command line is ignored without a
word.
"""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any

import typer

Command = Callable[..., None]
CONTEXT = "context"
KEYWORD_ONLY = inspect.Parameter.KEYWORD_ONLY


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Options that have no effect beside others.

    ``others`` have no effect beside all ``options`` (or without them, if they are ``needed``),
    because of ``why``. Each is the name of a parameter of the command.
    """

    options: tuple[str, ...]
    others: tuple[str, ...]
    why: str
    needed: bool = False

    def check(self, context: typer.Context) -> None:
        """Raises BadParameter.

        A variable of the environment is a default, which an option may overrule.
        """
        if self.needed is all(_is_given(context, name) for name in self.options):
            return
        for other in self.others:
            if _is_given(context, other):
                link = "needs" if self.needed else "can't be combined with"
                options = " and ".join(_shown(context, name) for name in self.options)
                raise typer.BadParameter(f"{_shown(context, other)} {link} {options}: {self.why}")


def refuse(*others: str, beside: str | tuple[str, ...], why: str) -> Rule:
    return Rule(options=(beside,) if isinstance(beside, str) else beside, others=others, why=why)


def need(*others: str, option: str, why: str) -> Rule:
    return Rule(options=(option,), others=others, why=why, needed=True)


def with_rules(*rules: Rule) -> Callable[[Command], Command]:
    """The command checks the rules before it does anything.

    Typer gives it the context that its signature asks for.
    """

    def add(command: Command) -> Command:
        own = inspect.Parameter(CONTEXT, KEYWORD_ONLY, annotation=typer.Context)

        @with_parameters([*inspect.signature(command).parameters.values(), own])
        @wraps(command)
        def called(**given: Any) -> None:
            context = given.pop(CONTEXT)
            for rule in rules:
                rule.check(context)
            command(**given)

        return called

    return add


def with_parameters(parameters: Sequence[inspect.Parameter]) -> Callable[[Command], Command]:
    """Typer reads a command's options from its signature, so this replaces that."""
    named = [parameter.replace(kind=KEYWORD_ONLY) for parameter in parameters]

    def add(command: Command) -> Command:
        command.__signature__ = inspect.Signature(named)  # type: ignore[attr-defined]
        command.__annotations__ = {parameter.name: parameter.annotation for parameter in named}
        return command

    return add


def _is_given(context: typer.Context, name: str) -> bool:
    """Whether the command line has the option, with another value than its default."""
    source = context.get_parameter_source(name)
    is_written = (
        source is not None and source.name == "COMMANDLINE"
    )  # False also for a command without the option
    return is_written and context.params[name] != _parameter(context, name).default


def _shown(context: typer.Context, name: str) -> str:
    parameter = _parameter(context, name)
    if parameter.param_type_name == "argument":
        return name.upper()
    return str(
        [*parameter.opts, *parameter.secondary_opts][-1]
    )  # --no-wait, because --wait is the default


def _parameter(context: typer.Context, name: str) -> Any:
    return next(parameter for parameter in context.command.params if parameter.name == name)
