"""Does what it is asked with the code of a checkout, one question a line: import, look up, call. It says values.

Objects stay here and are known outside by number. As in `main`, nothing here needs to be safe from the code: whoever
takes it over can say what the code could have said.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from typing import Any

from agentsignals_lab.sandbox.inside import wire

MOST_MESSAGE_CHARS = 500


def serve(number: int, folder: str) -> None:
    """Answers until nobody asks any more, and ends the process."""
    # Last: no file of the checkout stands in for one of the standard library's.
    sys.path.append(folder)
    objects: list[Any] = []
    end = os._exit
    with socket.socket(fileno=number) as talk, talk.makefile("rwb") as lines:
        for line in lines:
            lines.write(json.dumps(_answer(json.loads(line), objects)).encode() + b"\n")
            lines.flush()
    end(0)


def _answer(question: dict[str, Any], objects: list[Any]) -> dict[str, Any]:
    try:
        value = _done(question, objects)
    except BaseException as error:  # noqa: BLE001 - SystemExit too is an answer
        return {"raised": _names(type(error)), "message": _message(error)}
    try:
        return {"value": wire.encode(value)}
    except wire.Refused:
        objects.append(value)
        return {"object": len(objects) - 1, "type": wire.name_of(type(value))}
    except BaseException as error:  # noqa: BLE001 - a list that another thread changes, and the like
        return {"raised": _names(type(error)), "message": _message(error)}


def _done(question: dict[str, Any], objects: list[Any]) -> Any:
    if "module" in question:
        return __import__(question["module"], fromlist=question["names"])
    over = objects[question["object"]]
    if "attribute" in question:
        return getattr(over, question["attribute"])
    arguments = [_argument(form, objects) for form in question["arguments"]]
    return over(*arguments, **{name: _argument(form, objects) for name, form in question["named"]})


def _argument(form: dict[str, Any], objects: list[Any]) -> Any:
    return objects[form["object"]] if "object" in form else wire.decode(form["value"])


def _names(kind: type) -> list[str]:
    """Return the built-in classes that it is one of, the nearest first."""
    return [wire.name_of(base) for base in type.mro(kind) if base.__module__ == "builtins"]


def _message(error: BaseException) -> str:
    try:
        return str.__getitem__(str(error), slice(0, MOST_MESSAGE_CHARS))
    except BaseException:  # noqa: BLE001 - its own __str__ failed
        return ""
