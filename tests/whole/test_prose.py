"""What people read keeps to the words of the field: no private vocabulary, short sentences, titles that are noun phrases, and
figures in units that people use. The strings of the code count as well; docstrings do not.
A guide, not a law: tests/prose.toml excuses a line, with a reason."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import click

from auditor.cli import main
from auditor.judge.rule import Figure
from tests import shared

ROOT = Path(__file__).parents[2]
DOCUMENTS = (*sorted(ROOT.glob("docs/*.md")), *(ROOT / f"{name}.md" for name in ("README", "SECURITY", "CONTRIBUTING")))
ADVISORIES = ROOT / "auditor/data/advisories.toml"
QUOTED = {
    "source",
    "sources",
    "pattern",
    "model",
    "examples",
    "others",
    "references",
    "words",
    "means",
    "subject",
    "affected",
}

# what is not written any more (a pattern) -> the word of the field
GLOSSARY = {
    r"on the word of": "relies on (not verified)",
    r"keeps all": "no loss",
    r"the host below|the layer below": "the hypervisor, the underlying device",
    r"nobody here": "not visible from this host",
    r"was not asked": "not in this recording",
    r"undecided|cannot tell": "unknown",
    r"mend(?:s|ed|ing)?": "fix, fixed",
    r"grave(?:r|st)?": "severe",
    r"anew": "again",
    r"a look": "a check, a recording",
    r"stands? (?:in for|in|there|here)(?! the way)": "is in",
    r"(?:is|are) told": "reports, is reported",
    r"say(?:s)? of (?:itself|themselves)": "reports",
    r"told apart": "distinguished",
    r"of its own|of their own": "separate",
    r"for want of": "without, for lack of",
    r"beside": "next to, as well as, while",
    r"passed over": "skipped",
    r"br(?:ing|ings|ought) (?:it |them )?about": "causes",
    r"whoever|somebody|nobody": "the user, an administrator",
    r"the like of": "similar to",
}
OLD = re.compile(rf"\b(?:{'|'.join(f'({each})' for each in GLOSSARY)})\b", re.IGNORECASE)
# a title with one of these is a clause ("The pool is degraded"); behind "that" or "when" it qualifies a noun
FINITE = re.compile(
    r"\b(?:is|are|was|were|has|have|had|does|do|did|can|cannot|may|might|will|would|must|should|could)\b", re.IGNORECASE
)
QUALIFIED = re.compile(r"\b(?:that|which|where|when|before|after|than|because|once|,)\b.*$|,.*$", re.IGNORECASE)
NOBODY = re.compile(r"^(?:nothing|no one|nobody|something|somebody|this|it|the)\b", re.IGNORECASE)
MOST = {"title": 12, "message": 20, "text": 20, "code": 20}  # words of a sentence
BYTES = re.compile(r"_bytes\}|\} bytes\b")


class Text(NamedTuple):
    """Something that a person reads. kind: a key of MOST."""

    file: Path
    kind: str
    words: str

    def where(self) -> str:
        """File and line."""
        lines = self.file.read_text().split("\n")
        start = self.words.split("\n")[0][:40].strip()
        line = next((number for number, each in enumerate(lines, 1) if start and start in each), 1)
        return f"{self.file.relative_to(ROOT)}:{line}"


@cache
def texts() -> tuple[Text, ...]:
    return (*_rules(), *_tables(), *_documents(), *_help(), *_code())


def _rules() -> Iterator[Text]:
    for path in sorted((ROOT / "rules").glob("*.toml")):
        rule = tomllib.loads(path.read_text())
        yield Text(path, "title", rule["title"])
        fixes = [rule["fix"], *rule["fix"].get("cases", ())]
        messages = [each["message"] for each in (rule, *rule.get("cases", ())) if "message" in each]
        yield from (Text(path, "message", each.strip()) for each in messages)
        said = [rule.get(key, "") for key in ("impact", "why", "outside", "unprovoked")]
        said += [each.get(key, "") for each in fixes for key in ("text", "needs")]
        yield from (Text(path, "text", each.strip()) for each in (*said, *rule.get("conflicts", ())) if each)


def _tables() -> Iterator[Text]:
    for path in sorted(ADVISORIES.parent.glob("*.toml")):
        yield from (Text(path, "text", each.strip()) for each in _values(tomllib.loads(path.read_text())))
    for bug in tomllib.loads(ADVISORIES.read_text()).values():
        yield Text(ADVISORIES, "title", bug["title"])


def _values(table: Any) -> Iterator[str]:
    """The texts of a table, without what is quoted, matched or looked up."""
    if isinstance(table, dict):
        yield from (text for key, each in table.items() if key not in QUOTED for text in _values(each))
    elif isinstance(table, list):
        yield from (text for each in table for text in _values(each))
    elif isinstance(table, str) and " " in table.strip():
        yield table


def _documents() -> Iterator[Text]:
    """Paragraphs, items of lists and cells of tables; no code, and no page that the program printed."""
    for path in DOCUMENTS:
        prose = re.sub(r"```.*?```|^    .*$", "", path.read_text(), flags=re.DOTALL | re.MULTILINE)
        for block in re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )|\n(?=\|)|(?<=\|)\n", prose):
            for cell in block.split(" | ") if block.lstrip().startswith("|") else [block]:
                if (words := cell.strip(" |\n")) and not words.startswith("#"):
                    yield Text(path, "text", words)


def _help() -> Iterator[Text]:
    def below(command: click.Command, path: Path) -> Iterator[Text]:
        for each in (command.help, *(getattr(parameter, "help", None) for parameter in command.params)):
            if each:
                yield Text(path, "text", each)
        if isinstance(command, click.Group):
            for name in command.list_commands(click.Context(command)):
                one = command.get_command(click.Context(command), name)
                assert one
                yield from below(one, ROOT / f"auditor/commands/{name}.py" if path.stem == "cli" else path)

    return below(main, ROOT / "auditor/cli.py")


def _code() -> Iterator[Text]:
    """Strings of several words, {} for what is filled in. A docstring is none, nor is a type of a document (error type=...)."""
    for path in sorted((ROOT / "auditor").rglob("*.py")):
        tree = ast.parse(path.read_text())
        nodes = list(ast.walk(tree))
        apart = {id(each.value) for each in nodes if isinstance(each, ast.Expr)}  # docstrings
        apart |= {id(part) for each in nodes if isinstance(each, ast.JoinedStr) for part in each.values}
        for node in nodes:
            match node:
                case ast.JoinedStr(values=parts):
                    words = "".join(str(each.value) if isinstance(each, ast.Constant) else "{}" for each in parts)
                case ast.Constant(value=str(words)) if id(node) not in apart:
                    pass
                case _:
                    continue
            if len(words.split()) > 2 and not words.startswith("<"):  # two are a word of a document
                yield Text(path, "code", words)


@cache
def excused() -> tuple[dict[str, str], ...]:
    return tuple(tomllib.loads((ROOT / "tests/prose.toml").read_text()).get("excused", ()))


def _plain(text: str) -> str:
    """Without code, in one line."""
    return " ".join(re.sub(r"`[^`]*`|\([^)]*\)|\]\([^)]*\)", "CODE", text).split())


def sentences(text: str) -> list[str]:
    return re.split(r"(?<=[.;:!?])\*{0,2}\s+", _plain(text))


def objections(text: Text) -> Iterator[str]:
    """What to say better in it."""
    plain = _plain(text.words)
    for found in OLD.finditer(plain):
        word = next(better for better, group in zip(GLOSSARY.values(), found.groups(), strict=True) if group)
        yield f"{found[0]!r} in {plain[max(0, found.start() - 30) : found.end() + 30]!r}: write {word}"
    for sentence in sentences(text.words):
        if (count := len(sentence.split())) > MOST[text.kind]:
            yield f"{count} words, at most {MOST[text.kind]}: {sentence[:70]!r}"
    if text.kind == "title" and (FINITE.search(QUALIFIED.sub("", plain)) or NOBODY.search(plain)):
        yield f"a title is a noun phrase: {plain!r}"
    if text.kind == "message" and BYTES.search(text.words):
        yield f"a raw byte count, where {{fact:size}} has units: {plain!r}"


def test_what_people_read() -> None:
    wrong = [f"{text.where()}: {each}" for text in texts() for each in objections(text) if not _is_excused(text, each)]
    assert wrong == [], "\n" + "\n".join(wrong)


def _is_excused(text: Text, objection: str) -> bool:
    file = str(text.file.relative_to(ROOT))
    return any(each["file"] == file and each["text"] in " ".join(text.words.split()) for each in excused())


def test_each_excuse_has_a_reason_and_is_needed() -> None:
    for each in excused():
        assert each["reason"].strip(), each
        about = [text for text in texts() if _is_excused(text, "") and each["text"] in " ".join(text.words.split())]
        assert any(list(objections(text)) for text in about), each


def test_it_objects() -> None:
    """It finds what it is there for, and names it."""
    rule = ROOT / "rules/sync-disabled.toml"
    for kind, words, said in (
        ("text", "It keeps all.", "write no loss"),
        ("text", "This is\nmended by an upgrade.", "write fix, fixed"),
        ("title", "The pool is degraded", "a title is a noun phrase"),
        ("title", "Nothing protects pages", "a title is a noun phrase"),
        ("message", "{pool.checkpoint_bytes} bytes", "a raw byte count"),
        ("text", "word " * 21 + ".", "at most 20"),
    ):
        assert any(said in each for each in objections(Text(rule, kind, words))), words
    assert not list(objections(Text(rule, "title", "Dataset that no boot mounts (canmount=noauto)")))
    assert re.fullmatch(r"rules/sync-disabled\.toml:1", Text(rule, "title", "Ignored synchronous").where())


def test_figures_of_messages_have_units() -> None:
    """In the words of people, of every rule that has some."""
    figures = [
        part for rule in shared.rules() if rule.message for part in rule.message.parts if isinstance(part, Figure)
    ]
    assert len(figures) >= 19


def test_names_say_what_a_thing_is() -> None:
    """No new module, function or class is named by a participle."""
    names = re.compile(r"^(?:def|class) _?(told|said|seen|given|brought)\(", re.IGNORECASE | re.MULTILINE)
    found: dict[str, Any] = {
        str(path.relative_to(ROOT)): names.findall(path.read_text())
        for path in sorted((ROOT / "auditor").rglob("*.py"))
    }
    assert sum(map(len, found.values())) <= NAMED_BY_PARTICIPLE, {file: each for file, each in found.items() if each}


NAMED_BY_PARTICIPLE = 5  # those of before; this number only falls
