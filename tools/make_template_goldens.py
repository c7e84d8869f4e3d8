#!/usr/bin/env python3
"""Expected outputs of the chat templates in tests/data/chat_templates, made by Jinja2 as Hugging Face transformers sets it up.

    python3 -m venv /tmp/goldens && /tmp/goldens/bin/pip install jinja2==3.1.6
    /tmp/goldens/bin/python tools/make_template_goldens.py

Reads <name>.cases and rewrites the `expect` or `error` section of each case. A case is

    === <name>
    --- template              or "--- same template" for that of the case before
    <Jinja source>
    --- <messages | tools | extra | bos_token | eos_token | no_generation_prompt>      each may be left out
    <JSON, or text>
    --- expect                or "--- error" with the words of raise_exception, or "--- error any"
    <text>

Sections end before the next line that begins with "--- " or "=== "; their last newline does not belong to them.
The clock stands at 2024-07-26 15:04:05 UTC.
"""

import datetime
import json
import pathlib
import re

import jinja2
from jinja2.ext import Extension, loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

CASES = pathlib.Path(__file__).resolve().parent.parent / "tests" / "data" / "chat_templates"
NOW = datetime.datetime(2024, 7, 26, 15, 4, 5)


class Generation(Extension):
    """{% generation %} ... {% endgeneration %}: its body."""

    tags = {"generation"}

    def parse(self, parser):
        next(parser.stream)
        return parser.parse_statements(["name:endgeneration"], drop_needle=True)


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def render(case):
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols])
    environment.filters["tojson"] = tojson
    environment.globals["raise_exception"] = raise_exception
    environment.globals["strftime_now"] = lambda format: NOW.strftime(format)
    variables = {
        "messages": json.loads(case.get("messages", "[]")),
        "tools": json.loads(case["tools"]) if "tools" in case else None,
        "documents": None,
        "bos_token": case.get("bos_token", ""),
        "eos_token": case.get("eos_token", ""),
        "add_generation_prompt": "no_generation_prompt" not in case,
    }
    variables.update(json.loads(case.get("extra", "{}")))
    return environment.from_string(case["template"]).render(**variables)


def parse(text):
    cases = []
    for block in re.split(r"^=== ", text, flags=re.M)[1:]:
        name, _, body = block.partition("\n")
        case = {"name": name}
        for section in re.split(r"^--- ", body, flags=re.M)[1:]:
            key, _, value = section.partition("\n")
            if key == "same template":
                case["template"] = cases[-1]["template"]
                case["same"] = True
            else:
                case[key] = value[:-1] if value.endswith("\n") else value
        cases.append(case)
    return cases


def write(cases):
    lines = []
    for case in cases:
        lines.append(f"=== {case['name']}\n")
        if case.get("same"):
            lines.append("--- same template\n")
        for key, value in case.items():
            if key not in ("name", "same") and not (key == "template" and case.get("same")):
                lines.append(f"--- {key}\n{value}\n" if value else f"--- {key}\n" + ("\n" if key == "expect" else ""))
    return "".join(lines)


for path in sorted(CASES.glob("*.cases")):
    cases = parse(path.read_text())
    for case in cases:
        for key in ("expect", "error", "error any"):
            case.pop(key, None)
        try:
            case["expect"] = render(case)
        except jinja2.exceptions.TemplateError as error:
            raised = type(error) is jinja2.exceptions.TemplateError
            case["error" if raised else "error any"] = error.message if raised else ""
        except Exception:
            case["error any"] = ""
    path.write_text(write(cases))
    print(f"{path.name}: {len(cases)} cases")
