"""Shell completion scripts, generated from the parser: commands, flags, and the choices of flags."""

import argparse
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass

SHELLS = ("bash", "zsh", "fish")


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """A flag or positional argument. `choices` are its possible values; `takes_value` is true if it accepts a value."""

    names: tuple[str, ...]
    words: str
    takes_value: bool
    choices: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A command: its words, its subcommands, and its flags."""

    path: tuple[str, ...]
    commands: tuple[tuple[str, str], ...]
    flags: tuple[Flag, ...]
    choices: tuple[str, ...]  # of positional arguments


def run_completion(shell: str, parser: argparse.ArgumentParser) -> int:
    """Print the completion script, and return the exit code."""
    sys.stdout.write(completion_script(shell, parser))
    return 0


def completion_script(shell: str, parser: argparse.ArgumentParser) -> str:
    nodes = list(nodes_of(parser))
    return {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell](nodes)


def nodes_of(parser: argparse.ArgumentParser, path: tuple[str, ...] = ()) -> Iterator[Node]:
    """Yield the command itself, then its subcommands."""
    commands: dict[str, str] = {}
    below: list[tuple[str, argparse.ArgumentParser]] = []
    flags, choices = [], []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            words = {choice.dest: choice.help or "" for choice in action._choices_actions}
            commands |= {name: words.get(name, "") for name in action.choices}
            below += action.choices.items()
        elif action.help == argparse.SUPPRESS:
            continue
        elif action.option_strings:
            named = tuple(str(choice) for choice in action.choices or ())
            flags.append(
                Flag(
                    names=tuple(action.option_strings),
                    words=(action.help or "").partition(";")[0].partition("(")[0].strip(),
                    takes_value=action.nargs != 0,
                    choices=named,
                )
            )
        else:
            choices += [str(choice) for choice in action.choices or ()]
    yield Node(path=path, commands=tuple(commands.items()), flags=tuple(flags), choices=tuple(choices))
    for name, nested in below:
        yield from nodes_of(nested, (*path, name))


def _steps(nodes: list[Node], variable: str) -> str:
    """Return shell `case` branches that descend from a command to its subcommands."""
    places = (_quoted("/".join((*node.path, name))) for node in nodes for name, _ in node.commands)
    return "\n".join(f"      {place}) {variable}={place} ;;" for place in places)


def _cases(node: Node) -> Iterator[tuple[str, Flag]]:
    """Yield each flag that takes a value, with the `case` pattern of where it applies."""
    for flag in node.flags:
        if flag.takes_value:
            yield "|".join(_quoted(f"{'/'.join(node.path)}:{name}") for name in flag.names), flag


def _bash(nodes: list[Node]) -> str:
    """Return a function that walks the words to find the command, then offers its continuations."""
    steps = _steps(nodes, "path")
    values, offers = [], []
    for node in nodes:
        place = "/".join(node.path)
        for cases, flag in _cases(node):
            # Without a branch of ours, bash offers files.
            reply = f"words={_quoted(' '.join(flag.choices))}; flags=$words" if flag.choices else "return"
            values.append(f"    {cases}) {reply} ;;")
        words = [name for name, _ in node.commands] + [*node.choices]
        flags = [name for flag in node.flags for name in flag.names]
        offers.append(f"      {_quoted(place)}) words={_quoted(' '.join(words))}; flags={_quoted(' '.join(flags))} ;;")
    return f"""# Completion of emceepee for bash. Load it with: source <(emceepee completion bash)
_emceepee() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" previous="${{COMP_WORDS[COMP_CWORD-1]}}" path="" word words="" flags="" i
  for ((i = 1; i < COMP_CWORD; i++)); do
    word="${{COMP_WORDS[i]}}"
    case "${{path:+$path/}}$word" in
{steps}
    esac
  done
  case "$path:$previous" in
{chr(10).join(values)}
  esac
  if [[ -z "$words" ]]; then
    case "$path" in
{chr(10).join(offers)}
    esac
  fi
  [[ "$current" == -* ]] && words=$flags
  COMPREPLY=( $(compgen -W "$words" -- "$current") )
}}
complete -o default -F _emceepee emceepee
"""


def _zsh(nodes: list[Node]) -> str:
    steps = _steps(nodes, "place")
    values, offers = [], []
    for node in nodes:
        place = "/".join(node.path)
        for cases, flag in _cases(node):
            offer = f"compadd -- {' '.join(flag.choices)}" if flag.choices else "_files"
            values.append(f"    {cases}) {offer}; return ;;")
        described = [_described(name, words) for name, words in node.commands]
        described += [_described(choice, "") for choice in node.choices]
        flags = [_described(name, flag.words) for flag in node.flags for name in flag.names]
        offers.append(f"    {_quoted(place)}) words_here=({' '.join(described)}); flags=({' '.join(flags)}) ;;")
    return f"""#compdef emceepee
# Completion of emceepee for zsh. Write it to a file _emceepee in a folder of $fpath.
_emceepee() {{
  local place="" i
  local -a words_here flags
  for ((i = 2; i < CURRENT; i++)); do
    case "${{place:+$place/}}${{words[i]}}" in
{steps}
    esac
  done
  case "$place:${{words[CURRENT-1]}}" in
{chr(10).join(values)}
  esac
  case "$place" in
{chr(10).join(offers)}
  esac
  if [[ "${{words[CURRENT]}}" == -* ]]; then
    _describe 'flag' flags
  elif (( $#words_here )); then
    _describe 'command' words_here
  else
    _files
  fi
}}
if [[ "$funcstack[1]" == "_emceepee" ]]; then _emceepee "$@"; else compdef _emceepee emceepee; fi
"""


def _fish(nodes: list[Node]) -> str:
    """Return one line per possible completion, with the condition under which it applies."""
    lines = ["# Completion of emceepee for fish. Write it to ~/.config/fish/completions/emceepee.fish"]
    for node in nodes:
        below = " ".join(name for name, _ in node.commands)
        seen = " and ".join(f"__fish_seen_subcommand_from {word}" for word in node.path)
        none = f"not __fish_seen_subcommand_from {below}" if below else ""
        when = _quoted("; and ".join(filter(None, (seen.replace(" and ", "; and "), none))))
        condition = f" -n {when}" if when != "''" else ""
        for name, words in node.commands:
            lines.append(f"complete -c emceepee -f{condition} -a {_quoted(name)} -d {_quoted(words)}")
        if node.choices:
            lines.append(f"complete -c emceepee -f{condition} -a {_quoted(' '.join(node.choices))}")
        for flag in node.flags:
            names = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in flag.names)
            value = f" -x -a {_quoted(' '.join(flag.choices))}" if flag.choices else " -r" if flag.takes_value else ""
            lines.append(f"complete -c emceepee{condition} {names}{value} -d {_quoted(flag.words)}")
    return "\n".join(lines) + "\n"


def _described(name: str, words: str) -> str:
    return _quoted(f"{name}:{words}" if words else name)


def _quoted(text: str) -> str:
    """Quote text in a way that all these shells understand."""
    return shlex.quote(text.replace("\n", " "))
