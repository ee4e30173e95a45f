"""Recognise commands that wait for a person: they open an editor, ask a question, or read input that nobody types."""

from __future__ import annotations

import re
from typing import NamedTuple

from ctxmgr.diagnose.evidence.calls import split_command
from ctxmgr.diagnose.evidence.durations import without_wrappers
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
    """What a command waits for, and how to run it so that it returns.

    Attributes:
        secret: the option by which it reads the password for which it asks from a file, with `{0}` for that file, or "".
    """

    why: str
    step: str
    secret: str = ""


class _Rule(NamedTuple):
    """The conditions under which a command waits.

    Attributes:
        programs: any of these names, separated by spaces.
        verb: the plain words after the name begin with these.
        unless: none of these options is given, separated by spaces.
        most: maximum number of plain words, including the verb.
        only: one of these options is given, if there are any.
        last: the last plain word is one of these, if there are any.
        secret: see `Wait`.
    """

    programs: str
    why: str
    step: str
    verb: str = ""
    unless: str = ""
    most: int = _MANY
    only: str = ""
    last: str = ""
    secret: str = ""


_ASKS_PASSWORD = "it asks for a password on the terminal, and nobody types it"
_PASSWORD_FILE = "Stop it and let it read the password from a file, {0}; if no file is meant for that, ask the user for one."
_ASKS_TO_GO_ON = "it asks whether to go on, and nobody answers"
_GIVE_YES = "Stop it and give it `{0}`, if the user wants that done."
_BY_OPTIONS = "Stop it and give all its answers as options: {0}."
_ENCRYPTS = "-aes128 -aes192 -aes256 -des3 -des -camellia256"


def _ask_password(programs: str, way: str, verb: str = "", unless: str = "", only: str = "") -> _Rule:
    """Return a rule for programs that ask for a password unless an option, ``way``, names a file with it."""
    shown = way.replace("{0}", "FILE")
    return _Rule(programs, _ASKS_PASSWORD, _PASSWORD_FILE.format(f"`{shown}`"), verb, unless, only=only, secret=way)


_RULES = (
    _ask_password(
        "keytool",
        "-storepass:file {0}",
        unless="-storepass -storepass:file -storepass:env -help --help",
        only="-import -importcert -genkeypair -genkey -list -delete -exportcert -certreq",
    ),
    _Rule(
        "keytool",
        "it shows the certificate, asks `Trust this certificate? [no]`, and nobody answers",
        "Stop it and give it `-noprompt`, if the fingerprint of the certificate is known to be right.",
        unless="-noprompt",
        only="-importcert -import",
    ),
    _Rule(
        "keytool",
        "it asks for the names of the new certificate, and nobody answers",
        _BY_OPTIONS.format("the names with `-dname`, the password with `-storepass:file FILE`"),
        unless="-dname",
        only="-genkeypair -genkey -selfcert",
    ),
    _ask_password("jarsigner", "-storepass:file {0}", unless="-verify -storepass -storepass:file -storepass:env"),
    _ask_password("openssl", "-passout file:{0}", "pkcs12", "-passout -password -nokeys", "-export"),
    _ask_password("openssl", "-passin file:{0}", "pkcs12", "-passin -password -export -help"),
    _ask_password("openssl", "-passout file:{0}", "pkcs8", "-passout -nocrypt", "-topk8"),
    _ask_password("openssl", "-passout file:{0}", "genrsa", "-passout", _ENCRYPTS),
    _ask_password("openssl", "-passout file:{0}", "rsa", "-passout", _ENCRYPTS),
    _ask_password("openssl", "-pass file:{0}", "genpkey", "-pass", f"{_ENCRYPTS} -aes-256-cbc"),
    _ask_password("openssl", "-pass file:{0}", "enc", "-pass -k -kfile -K -list -ciphers"),
    _Rule(
        "openssl",
        "it asks for the subject of the certificate, and nobody answers",
        _BY_OPTIONS.format("the subject with `-subj`, and the rest with `-batch`"),
        "req",
        "-subj -batch -config -in -help",
        only="-new -x509 -newkey",
    ),
    _Rule(
        "openssl",
        "it asks whether to sign the certificate",
        "Stop it and give it `-batch`.",
        "ca",
        "-batch -gencrl -revoke -status",
    ),
    _ask_password(
        "ansible-vault",
        "--vault-password-file {0}",
        unless="--vault-password-file --vault-pass-file --vault-id --help --version",
    ),
    _ask_password("htpasswd", "-i < {0}", unless="-b -i -D -v"),
    _ask_password(
        "gpg gpg2", "--batch --pinentry-mode loopback --passphrase-file {0}", unless="--batch", only="-c --symmetric"
    ),
    _ask_password("cryptsetup", "--key-file {0}", "luksOpen", "--key-file -d"),
    _ask_password("cryptsetup", "--batch-mode --key-file {0}", "luksFormat", "--key-file -d -q"),
    _ask_password("ldapsearch ldapadd ldapmodify ldapdelete ldapwhoami ldappasswd", "-y {0}", only="-W", unless="-y"),
    _Rule(
        "kinit",
        _ASKS_PASSWORD,
        "Stop it and use a keytab, `-k -t FILE`; if none is meant for that, ask the user to do this step.",
        unless="-k -t -R -V --keytab --help",
    ),
    _Rule(
        "pg_dump pg_restore pg_dumpall createdb dropdb createuser",
        _ASKS_PASSWORD,
        "Stop it and run it without `-W`: it reads the password from `~/.pgpass` or the variable `PGPASSFILE`.",
        only="-W",
    ),
    _Rule("pip pip3", _ASKS_TO_GO_ON, _GIVE_YES.format("-y"), "uninstall", "-y --yes"),
    *(
        _Rule("conda mamba", _ASKS_TO_GO_ON, _GIVE_YES.format("-y"), verb, "-y --yes -d --dry-run --json -h --help")
        for verb in ("install", "create", "remove", "update", "env remove")
    ),
    *(
        _Rule("apt apt-get dnf yum zypper", _ASKS_TO_GO_ON, _GIVE_YES.format("-y"), verb, f"{_YES} -n -s --simulate --dry-run")
        for verb in ("remove", "purge", "autoremove", "upgrade", "dist-upgrade", "full-upgrade")
    ),
    _Rule("zypper", _ASKS_TO_GO_ON, _GIVE_YES.format("-n"), "install", f"{_YES} -n --dry-run"),
    _Rule("pacman yay", _ASKS_TO_GO_ON, _GIVE_YES.format("--noconfirm"), unless="--noconfirm -p -Q", only="-S -R -U"),
    *(
        _Rule("docker podman", _ASKS_TO_GO_ON, _GIVE_YES.format("-f"), f"{verb} prune", "-f --force")
        for verb in ("system", "image", "container", "volume", "network", "builder")
    ),
    _Rule("gh", _ASKS_TO_GO_ON, _GIVE_YES.format("--yes"), "repo delete", "--yes --confirm"),
    _Rule(
        "gh",
        "it asks for title and body, and nobody answers",
        _BY_OPTIONS.format("`--title` and `--body`, or `--fill`"),
        "pr create",
        "-t --title -f --fill --fill-first --fill-verbose -w --web --help",
    ),
    _Rule(
        "gh",
        "it asks how to merge, and nobody answers",
        _BY_OPTIONS.format("`--merge`, `--squash` or `--rebase`"),
        "pr merge",
        "-m -s -r --merge --squash --rebase --auto --disable-auto --help",
    ),
    _Rule(
        "svn hg",
        _EDITOR,
        'Stop it and give the message with the command: `-m "..."`.',
        "commit",
        "-m --message -F --file -l --logfile --help",
    ),
    _Rule("git", _EDITOR, "Stop it and change the file with your edit tool.", "config", only="-e --edit"),
    _Rule("git", "it asks about each hunk", "Stop it and name the files.", "stash", only="-p --patch"),
    _Rule("ansible-vault", _EDITOR, "Stop it and change a decrypted copy in a file.", "edit"),
    *(
        _Rule(
            "python python3",
            "it asks questions, and nobody answers",
            _BY_OPTIONS.format(way),
            f"manage.py {verb}",
            "--noinput --no-input --help",
        )
        for verb, way in (
            ("createsuperuser", "`--noinput` with the variables `DJANGO_SUPERUSER_USERNAME` and `DJANGO_SUPERUSER_PASSWORD`"),
            ("flush", "`--noinput`, if the user wants the data gone"),
        )
    ),
    _Rule(
        "python python3", _PROMPT, "Stop it and give it the code with `-c`.", "manage.py shell", "-c --command --help", most=2
    ),
    _Rule(
        "pulumi",
        _ASKS_TO_GO_ON,
        "Stop it and give it `--yes`, only if the user allowed that; `pulumi preview` asks nothing.",
        "up",
        "-y --yes -f --skip-preview",
    ),
    _Rule(
        "sam", "it asks questions, and nobody answers", "Stop it and run it without `--guided`.", "deploy", only="--guided -g"
    ),
    _Rule("poetry", "it asks questions about the new project", "Stop it and give it `-n`.", "init", "-n --no-interaction"),
    _Rule("fdisk gdisk cfdisk", _PROMPT, "Stop it and ask the user to do this step.", unless="-l --list -s -v --version"),
    _Rule("parted", _PROMPT, "Stop it and give it `-s` and its command.", unless="-s --script -l --list -v --version", most=1),
    _Rule(
        "vault", "it asks for a key", "Stop it and ask the user to do this step.", "operator unseal", "-status -reset", most=2
    ),
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
    commands = split_command(_OUTPUT.sub(" ", command)) if "<" not in command else []
    found = ((words, wait) for words in map(without_wrappers, commands) if words and (wait := find_wait(words)) is not None)
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
            return Wait(rule.why, rule.step, rule.secret)
    return None


def _list_options(words: list[str]) -> set[str]:
    """Return the options among the words. Combined ones, such as ``-am``, are also returned one by one."""
    found = {word.partition("=")[0] for word in words if word.startswith("-")}
    return found | {f"-{letter}" for word in found if not word.startswith("--") for letter in word[1:]}
