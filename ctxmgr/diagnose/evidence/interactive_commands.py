"""Recognise commands that wait for a person: they open an editor, ask a question, or read input that nobody types."""

from __future__ import annotations

import re
from typing import NamedTuple

from ctxmgr.diagnose.evidence.calls import split_command
from ctxmgr.text.patterns import lazy_pattern

_EDITOR = "it opens an editor and waits for a person to close it"
_PROMPT = "it is an interactive prompt and waits for input that nobody types"
_NO_FILE = "it was given no file, so it reads its input, which nobody types"
_NO_EDITOR = "Stop it and keep the prepared message: `GIT_EDITOR=true git {0}` (or `git -c core.editor=true {0}`)."
_MANY = 1_000
_YES = "-y --yes --assume-yes --non-interactive --noinput --no-input --force -q"
_ALONE = "Stop it and name the file."
_ACCOUNT = "it asks questions about the account"
_BY_USER = "Stop it and ask the user to do this step."
_TERMINAL = "it opens a terminal and waits for input that nobody types"
_SHELLS = "bash sh ash zsh python python3 node psql"


class Wait(NamedTuple):
    """What a command waits for, and how to run it so that it returns."""

    why: str
    step: str


class _Rule(NamedTuple):
    """The conditions under which a command waits.

    Attributes:
        programs: any of these names, separated by spaces.
        verb: the plain words after the name begin with these.
        unless: none of these options is given, separated by spaces.
        most: maximum number of plain words, including the verb.
        only: one of these options is given, if there are any.
        last: the last plain word is one of these, if there are any.
    """

    programs: str
    why: str
    step: str
    verb: str = ""
    unless: str = ""
    most: int = _MANY
    only: str = ""
    last: str = ""


_RULES = (
    _Rule(
        "git",
        _EDITOR,
        'Stop it and give the message with the command: `git commit -m "..."`, or `--no-edit` to keep the old one.',
        "commit",
        "-m -F -C -c --message --file --no-edit --reuse-message --fixup --dry-run",
    ),
    _Rule(
        "git",
        _EDITOR,
        "Stop it. Set `GIT_SEQUENCE_EDITOR` to a command that writes the plan, or rebase without `-i`.",
        "rebase",
        only="-i --interactive",
    ),
    _Rule("git", _EDITOR, _NO_EDITOR.format("rebase --continue"), "rebase", only="--continue --edit-todo"),
    _Rule("git", _EDITOR, _NO_EDITOR.format("cherry-pick --continue"), "cherry-pick", only="--continue -e --edit"),
    _Rule("git", _EDITOR, _NO_EDITOR.format("merge --continue"), "merge", only="--continue -e --edit"),
    _Rule("git", _EDITOR, "Stop it and give it `--no-edit`.", "revert", "--no-edit -n --no-commit --abort --quit --skip"),
    _Rule(
        "git", _EDITOR, 'Stop it and give the message with the command: `git tag -a NAME -m "..."`.', "tag", "-m -F", only="-a"
    ),
    _Rule("git", "it asks about each hunk", "Stop it and name the files to add.", "add", only="-p -i --patch --interactive"),
    _Rule("vi vim nvim nano emacs visudo", _EDITOR, "Stop it and change the file with your edit tool.", unless="-es -c"),
    _Rule("crontab", _EDITOR, "Stop it and give the new content from a file instead.", only="-e"),
    _Rule("kubectl", _EDITOR, "Stop it and give the new content from a file instead, with `kubectl apply -f`.", "edit"),
    _Rule(
        "less more man top htop",
        "it shows pages and waits for keys",
        "Stop it and print the text with `cat`, `head` or `ps`.",
        unless="-b",
    ),
    _Rule(
        "npm yarn pnpm",
        "it asks questions about the new project, and nobody answers",
        "Stop it and give it `-y`.",
        "init",
        _YES,
    ),
    _Rule(
        "npm yarn pnpm",
        "it asks questions about the new project, and nobody answers",
        "Stop it and give it all answers as options: `npm create TOOL@latest NAME -- --template T`, with `--yes`.",
        "create",
        _YES,
    ),
    _Rule(
        "apt apt-get dnf yum",
        "it asks whether to go on, and nobody answers",
        "Stop it and give it `-y`, if the user wants that installed.",
        "install",
        _YES,
    ),
    _Rule(
        "ssh-keygen",
        "it asks for a file and a passphrase",
        "Stop it and name both: `ssh-keygen -N '' -f FILE`, if the user wants a key without a passphrase.",
        unless="-N -P -l -R -F -y",
    ),
    _Rule(
        "python python3 node irb ghci lua",
        _PROMPT,
        "Stop it and give it the code: a file, or `-c` (`-e` for node).",
        unless="-c -e -m -V --version --help",
        most=0,
    ),
    _Rule("sqlite3", _PROMPT, "Stop it and give it the statement with the command.", unless="-cmd -init --version", most=1),
    _Rule(
        "psql mysql mongosh",
        _PROMPT,
        "Stop it and give it the statement with the command.",
        unless="-c -f -e -l --command --file --execute --eval --version",
    ),
    _Rule(
        "redis-cli", _PROMPT, "Stop it and give it the request with the command.", unless="-h -p -n -u --scan --version", most=0
    ),
    _Rule("passwd su", "it asks for a password", "Stop it and ask the user to do this step.", unless="-c"),
    _Rule(
        "docker",
        "it asks for a password",
        "Stop it and ask the user to do this step.",
        "login",
        "-p --password --password-stdin",
    ),
    _Rule(
        "gh", "it asks questions about the account", "Stop it and ask the user to do this step.", "auth login", "--with-token"
    ),
    _Rule("az heroku firebase npm yarn vercel wrangler", _ACCOUNT, _BY_USER, "login", "--service-principal --identity --token"),
    _Rule("gcloud fly flyctl doctl", _ACCOUNT, _BY_USER, "auth", "--cred-file --access-token", only="", last="login init"),
    _Rule("aws", _ACCOUNT, _BY_USER, "configure", most=1),
    _Rule(
        "docker podman kubectl oc",
        _TERMINAL,
        "Stop it and give the command itself, without `-it`: `exec NAME sh -c COMMAND`.",
        only="-i -t --interactive --tty --stdin",
        last=_SHELLS,
    ),
    _Rule("docker podman kubectl", _TERMINAL, "Stop it and read the output with `logs`.", "attach"),
    _Rule("tmux", _TERMINAL, "Stop it and read the pane with `tmux capture-pane -p`.", "attach"),
    _Rule(
        "vagrant heroku", _TERMINAL, "Stop it and give the command with it: `vagrant ssh -c COMMAND`.", "ssh", "-c --command"
    ),
    _Rule("telnet ftp", _PROMPT, "Stop it and use `curl` with a time limit."),
    _Rule("sftp", _PROMPT, "Stop it and give it its commands in a file, with `-b`.", unless="-b"),
    _Rule("openssl", _NO_FILE, "Stop it and end its input: `openssl s_client ... </dev/null`.", "s_client"),
    _Rule(
        "gdb lldb", _PROMPT, "Stop it and give it its commands: `gdb -batch -ex COMMAND`.", unless="-batch -ex -x --batch -b -o"
    ),
    _Rule("pytest", "it stops in the debugger at a failure", "Stop it and run it without `--pdb`.", only="--pdb --trace"),
    _Rule("python python3", _PROMPT, "Stop it and run it without `-i`.", only="-i"),
    _Rule("read select", _PROMPT, "Stop it and set the value in the command.", unless="-t -u"),
    _Rule(
        "gpg gpg2",
        "it asks for a name and a passphrase",
        "Stop it and give it all answers in a file, with `--batch`.",
        unless="--batch",
        only="--gen-key --full-gen-key --full-generate-key --generate-key --edit-key",
    ),
    _Rule(
        "make", "it shows a menu and waits for keys", "Stop it and set the options in the `.config`.", last="menuconfig nconfig"
    ),
    _Rule(
        "dpkg-reconfigure mysql_secure_installation",
        "it asks questions, and nobody answers",
        "Stop it and run it without questions: `DEBIAN_FRONTEND=noninteractive`, or the statements themselves.",
        unless="-f --frontend --use-default",
    ),
    _Rule(
        "terraform tofu",
        "it asks whether to go on, and nobody answers",
        "Stop it and give it `-auto-approve`, only if the user allowed that; `terraform plan` asks nothing.",
        "apply",
        "-auto-approve --auto-approve -input",
        most=1,
    ),
    _Rule(
        "terraform tofu pulumi cdk",
        "it asks whether to go on, and nobody answers",
        "Stop it and ask the user whether it may be destroyed; only then give it the option that asks nothing.",
        "destroy",
        "-auto-approve --auto-approve -input -y --yes -f --force",
    ),
    _Rule(
        "rm mv cp",
        "it asks about each file",
        "Stop it and name the files exactly, without `-i`.",
        unless="-f",
        only="-i --interactive",
    ),
    _Rule(
        "ansible-playbook ansible",
        "it asks for a password",
        "Stop it and ask the user to do this step.",
        only="-K -k --ask-become-pass --ask-pass --ask-vault-pass",
    ),
    _Rule("cat wc sort uniq", _NO_FILE, _ALONE, most=0),
    _Rule(
        "grep", _NO_FILE, "Stop it and name the file or folder behind the pattern.", unless="-r -R --recursive -e -f", most=1
    ),
    _Rule("jq yq xq", _NO_FILE, "Stop it and name the file behind the filter.", unless="-n --null-input", most=1),
    _Rule("sed awk", _NO_FILE, "Stop it and name the file behind the program.", unless="-n -f -e -i", most=1),
)
RUNS_ON = lazy_pattern(
    r"http\.server|\b(?:runserver|serve_forever)\b|\b(?:flask|rails|php artisan|hugo|mkdocs|jekyll) (?:run|s|server|serve)\b"
    r"|\b(?:uvicorn|gunicorn|nodemon|vite|webpack-dev-server|live-server)\b"
    r"|\b(?:npm|yarn|pnpm|bun)(?: run)? (?:start|dev|serve|watch)\b|\bnext dev\b|\btail\b[^"
    r"|;&\n]{0,100}\s(?:-\w*[fF]\b|--follow)|\b(?:kubectl|docker|compose|podman|journalctl|heroku|fly|stern|oc|pm2"
    r"|dmesg)\b[^|;&\n]{0,120}\s(?:-f|--follow|-w|--watch|--tail)\b|\binotifywait\b[^|;&\n]{0,80}\s-m\b"
    r"|\btcpdump\b(?!.*\s-c)|\bvmstat \d+\s*$|\bgh run watch\b|\bwatch \S|--watch\b"
    r"|\btsc -w\b|\bkubectl (?:port-forward|logs .{0,80}-f\b|proxy)|\bnc -\w*l|\bphp -S\b|\bredis-server\b(?!.*daemonize)"
    r"|\bping (?!.*-c)|\bsleep (?:\d{4,}|infinity)|\bjournalctl .{0,40}-f\b"
    r"|\b(?:streamlit run|jupyter[ -](?:lab|notebook|server)|tensorboard|ng serve|webpack serve|docker events|adb logcat"
    r"|airflow (?:webserver|scheduler|standalone|triggerer)|nginx -g|consul agent|(?:vault|minio) server|caddy run|ngrok http"
    r"|cloudflared tunnel|redis-cli\b.{0,60} (?:monitor|p?subscribe)|storybook dev|astro dev|nuxt dev|expo start|skaffold dev"
    r"|localstack start|ollama serve|vllm serve|rq worker|mitm(?:dump|proxy)|spring-boot:run|bootRun|cargo watch)\b"
    r"|\bcelery\b.{0,80}\b(?:worker|beat)\b|(?:^|[;&] ?|\bexec )(?:etcd|mongod|mysqld|memcached|sidekiq)\b(?!.*--fork)"
)
"""Commands that serve or follow something until they are stopped."""


_OUTPUT = lazy_pattern(r"\d?>{1,2} ?(?:&\d|[\w./-]{1,200})")


def find_command_wait(command: str) -> Wait | None:
    """Return what a program in a command waits for, if nothing is piped or read into it."""
    # The file that takes the output is none that is read.
    parts = split_command(_OUTPUT.sub(" ", command)) if "<" not in command else []
    found = ((words, wait) for words in parts if (wait := find_wait(words)) is not None)
    # Piped input answers the program.
    return next((wait for words, wait in found if not re.search(rf"\|\s*{re.escape(words[0])}\b", command)), None)


def find_wait(words: list[str]) -> Wait | None:
    """Return what a command, given as words, waits for; None if it is not known to wait."""
    program, rest = words[0].rpartition("/")[2], words[1:]
    plain = [word for word in rest if not word.startswith("-") or word == "-"]
    options = _list_options(rest)
    for rule in _RULES:
        verb = rule.verb.split()
        # More arguments mean another use, such as `python FILE`.
        if program not in rule.programs.split() or plain[: len(verb)] != verb or len(plain) > rule.most:
            continue
        # With an option such as `--yes`, it asks nothing.
        if rule.last and (not plain or plain[-1] not in rule.last.split()):
            continue
        if options.isdisjoint(rule.unless.split()) and (not rule.only or not options.isdisjoint(rule.only.split())):
            return Wait(rule.why, rule.step)
    return None


def _list_options(words: list[str]) -> set[str]:
    """Return the options among the words. Combined ones, such as ``-am``, are also returned one by one."""
    found = {word.partition("=")[0] for word in words if word.startswith("-")}
    return found | {f"-{letter}" for word in found if not word.startswith("--") for letter in word[1:]}
