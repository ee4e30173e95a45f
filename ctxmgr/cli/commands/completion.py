"""``completion``: let a shell complete commands, options, sessions and settings.

The shell asks this program with the words at hand, so what it offers is never out of date; it answers as quickly as a query.
"""

from __future__ import annotations

import sys
from typing import Annotated

from ctxmgr.cli import declarations as typer
from ctxmgr.errors import InvalidInput

_BASH = r"""_ctxmgr() {
  local IFS=$'\n' line
  COMPREPLY=()
  while read -r line; do
    if [[ $line == :files ]]; then compopt -o default; else COMPREPLY+=("${line%%$'\t'*}"); fi
  done < <("${COMP_WORDS[0]}" completion --words "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _ctxmgr ctxmgr
"""

_ZSH = r"""#compdef ctxmgr
_ctxmgr() {
  local -a told
  local line files=0
  while IFS= read -r line; do
    if [[ $line == :files ]]; then files=1; else told+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}"); fi
  done < <("${words[1]}" completion --words "${(@)words[2,CURRENT]}" 2>/dev/null)
  (( ${#told} )) && _describe -V ctxmgr told
  (( files )) && _files
}
if [[ $funcstack[1] == _ctxmgr ]]; then _ctxmgr "$@"; else compdef _ctxmgr ctxmgr; fi
"""

_FISH = r"""function __ctxmgr_told
  set -l words (commandline -opc) (commandline -ct)
  command ctxmgr completion --words $words[2..-1] 2>/dev/null | string match -v ':files'
end
function __ctxmgr_files
  set -l words (commandline -opc) (commandline -ct)
  command ctxmgr completion --words $words[2..-1] 2>/dev/null | string match -q ':files'
end
complete -c ctxmgr -f
complete -c ctxmgr -a '(__ctxmgr_told)'
complete -c ctxmgr -n __ctxmgr_files -F
"""

SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}


def completion(
    shell: Annotated[str, typer.Argument(metavar="bash|zsh|fish", help="Your shell.")],
) -> None:
    """Print the script that lets a shell complete commands, options, sessions and settings.

    Examples:
      ctxmgr completion bash >> ~/.bashrc
      ctxmgr completion zsh > ~/.zfunc/_ctxmgr
      ctxmgr completion fish > ~/.config/fish/completions/ctxmgr.fish
    """
    if shell not in SCRIPTS:
        raise InvalidInput(f"no completion for the shell {shell!r}", f"ctxmgr completion {' | '.join(SCRIPTS)}")
    sys.stdout.write(SCRIPTS[shell])
