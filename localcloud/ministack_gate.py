"""Which requests MiniStack answers, and the access keys with which its functions send theirs."""

import os
from collections.abc import Mapping
from typing import Any

from ministack.core import lambda_runtime
from ministack.services import sts
from ministack.services.cloudformation import custom_resource

from localcloud.gate import find_page, find_refusal

KEY_VARIABLE = "AWS_ACCESS_KEY_ID"
# On AWS too, whoever has the URL of such an answer may send it once. Its last part is random.
CUSTOM_RESOURCE_PATH = "/_ministack/cfn-response/"


class MiniStackGate:
    """Answers programs that name the local cloud's access key, or one of a role that such a program has assumed."""

    def __init__(self) -> None:
        self._access_key_id = os.environ[KEY_VARIABLE]

    def find_refusal(self, scope: Mapping[str, Any], headers: Mapping[str, str]) -> str | None:
        if _is_awaited_answer(scope):
            return find_page(headers.get)
        roles = [key for key, session in list(sts._sessions.items()) if not sts._session_expired(session)]
        query = scope.get("query_string", b"").decode("latin-1")
        return find_refusal(headers.get, query, [self._access_key_id, *roles])


def equip_functions() -> None:
    """Gives functions the access key: MiniStack gives them the account's number."""
    credentials, key = lambda_runtime.execution_credentials, {KEY_VARIABLE: os.environ[KEY_VARIABLE]}
    lambda_runtime.execution_credentials = lambda config: {**credentials(config), **key}


def _is_awaited_answer(scope: Mapping[str, Any]) -> bool:
    path = scope["path"]
    is_answer = scope.get("method") == "PUT" and path.startswith(CUSTOM_RESOURCE_PATH)
    return is_answer and path.removeprefix(CUSTOM_RESOURCE_PATH) in custom_resource._pending
