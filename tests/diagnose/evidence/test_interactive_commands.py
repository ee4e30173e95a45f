"""Which commands wait for a person, and what makes each return; beside each the same command that does not wait."""

from __future__ import annotations

import pytest

from ctxmgr.diagnose.evidence.interactive_commands import RUNS_ON, find_command_wait, find_wait

WAITS = [
    # what waits, a word of why, a word of the way out, and the same without waiting
    ("git commit", "editor", '-m "..."', "git commit -m x"),
    ("git commit -a", "editor", '-m "..."', "git commit -am x"),
    ("git commit --amend", "editor", "--no-edit", "git commit --amend --no-edit"),
    ("git commit", "editor", "-m", "git commit --message=x"),
    ("git rebase -i HEAD~3", "editor", "GIT_SEQUENCE_EDITOR", "git rebase main"),
    ("git rebase --continue", "editor", "core.editor=true rebase --continue", "git rebase --abort"),
    ("git cherry-pick --continue", "editor", "core.editor=true cherry-pick", "git cherry-pick abc"),
    ("git merge --continue", "editor", "core.editor=true merge", "git merge main"),
    ("git revert HEAD", "editor", "--no-edit", "git revert --no-edit HEAD"),
    ("git tag -a v1", "editor", "git tag -a NAME -m", "git tag v1"),
    ("git add -p", "each hunk", "name the files", "git add ."),
    ("vim a.py", "editor", "edit tool", "vim -es a.py"),
    ("/usr/bin/less log", "keys", "cat", "less-than"),
    ("top", "keys", "ps", "top -b"),
    ("crontab -e", "editor", "from a file", "crontab -l"),
    ("kubectl edit deploy/web", "editor", "kubectl apply -f", "kubectl get deploy/web"),
    ("npm init", "questions", "-y", "npm init --yes"),
    ("yarn create vite", "questions", "--template", "yarn create vite --yes"),
    ("apt-get install jq", "whether to go on", "-y", "apt-get install -y jq"),
    ("ssh-keygen -t rsa", "passphrase", "-f FILE", "ssh-keygen -N x -f k"),
    ("python3", "prompt", "-c", "python3 a.py"),
    ("node", "prompt", "-e", "node -e x"),
    ("sqlite3 a.db", "prompt", "statement", "sqlite3 a.db .schema"),
    ("psql shop", "prompt", "statement", "psql shop -c x"),
    ("redis-cli", "prompt", "request", "redis-cli ping"),
    ("su", "password", "ask the user", "su -c ls"),
    ("docker login", "password", "ask the user", "docker login -u me --password-stdin"),
    ("gh auth login", "account", "ask the user", "gh auth status"),
    ("cat", "no file", "name the file", "cat a.txt"),
    ("grep word", "no file", "behind the pattern", "grep -r word"),
    ("jq .a", "no file", "behind the filter", "jq .a x.json"),
    ("sed s/a/b/", "no file", "behind the program", "sed s/a/b/ x"),
    ("az login", "account", "ask the user", "az login --identity"),
    ("gcloud auth login", "account", "ask the user", "gcloud auth list"),
    ("aws configure", "account", "ask the user", "aws configure list"),
    ("docker run -it ubuntu bash", "terminal", "without `-it`", "docker run -it ubuntu ls"),
    ("kubectl exec -it pod/x -- sh", "terminal", "without `-it`", "kubectl exec pod/x -- sh"),
    ("docker attach web", "terminal", "logs", "docker logs web"),
    ("tmux attach", "terminal", "capture-pane", "tmux ls"),
    ("vagrant ssh", "terminal", "-c COMMAND", "vagrant ssh -c ls"),
    ("telnet host 80", "prompt", "curl", "telnetd"),
    ("sftp host", "prompt", "-b", "sftp -b cmds host"),
    ("openssl s_client -connect a:443", "no file", "/dev/null", "openssl x509 -in a"),
    ("gdb ./a.out", "prompt", "-batch", "gdb -batch -ex bt ./a.out"),
    ("pytest --pdb", "debugger", "--pdb", "pytest"),
    ("python3 -i x.py", "prompt", "without `-i`", "python3 x.py"),
    ("read answer", "prompt", "set the value", "read -t 5 answer"),
    ("gpg --gen-key", "passphrase", "--batch", "gpg --batch --gen-key p"),
    ("make menuconfig", "menu", ".config", "make olddefconfig"),
    ("dpkg-reconfigure tzdata", "questions", "noninteractive", "dpkg-reconfigure -f noninteractive tzdata"),
    ("terraform apply", "go on", "allowed", "terraform apply -auto-approve"),
    ("terraform apply -no-color", "go on", "plan", "terraform apply plan.out"),
    ("terraform destroy", "go on", "ask the user", "terraform destroy -auto-approve"),
    ("rm -i a b", "each file", "without `-i`", "rm -f a"),
    ("ansible-playbook -K site.yml", "password", "ask the user", "ansible-playbook site.yml"),
    (
        "keytool -importcert -file a -storepass:file p",
        "Trust this",
        "-noprompt",
        "keytool -importcert -noprompt -storepass:file p",
    ),
    ("keytool -importcert -noprompt -file a", "password", "-storepass:file", "keytool -printcert -file a"),
    ("keytool -genkeypair -storepass:file p", "names", "-dname", "keytool -genkeypair -storepass:file p -dname CN=a"),
    ("keytool -list -keystore a", "password", "-storepass:file", "keytool -list -storepass:env P -keystore a"),
    ("jarsigner a.jar key", "password", "-storepass:file", "jarsigner -verify a.jar"),
    ("openssl pkcs12 -export -in a", "password", "-passout", "openssl pkcs12 -export -in a -passout file:p"),
    ("openssl pkcs12 -in a.p12 -nodes", "password", "-passin", "openssl pkcs12 -in a.p12 -passin file:p"),
    ("openssl pkcs8 -topk8 -in a", "password", "-passout", "openssl pkcs8 -topk8 -nocrypt -in a"),
    ("openssl genrsa -aes256 -out k", "password", "-passout", "openssl genrsa -out k 2048"),
    ("openssl rsa -aes256 -in k", "password", "-passout", "openssl rsa -in k -check"),
    ("openssl genpkey -aes256 -algorithm RSA", "password", "-pass file", "openssl genpkey -algorithm RSA"),
    ("openssl enc -aes-256-cbc -in a", "password", "-pass file", "openssl enc -aes-256-cbc -in a -pass file:p"),
    ("openssl req -new -key k", "subject", "-subj", "openssl req -in a.csr -noout -text"),
    ("openssl ca -in a.csr", "sign", "-batch", "openssl ca -batch -in a.csr"),
    ("ansible-vault view a.yml", "password", "--vault-password-file", "ansible-vault view --vault-id p a.yml"),
    ("htpasswd -c users bob", "password", "-i", "htpasswd -b users bob x"),
    ("gpg -c a.txt", "password", "--passphrase-file", "gpg --verify a.sig"),
    ("cryptsetup luksOpen /dev/a b", "password", "--key-file", "cryptsetup luksOpen --key-file k /dev/a b"),
    ("cryptsetup luksFormat /dev/a", "password", "--key-file", "cryptsetup luksDump /dev/a"),
    ("ldapsearch -x -W -D cn=a", "password", "-y", "ldapsearch -x -b dc=a"),
    ("kinit bob", "password", "keytab", "kinit -k -t bob.keytab bob"),
    ("pg_dump -W shop", "password", "without `-W`", "pg_dump shop"),
    ("pip uninstall requests", "go on", "-y", "pip uninstall -y requests"),
    ("conda install numpy", "go on", "-y", "conda install -y numpy"),
    ("conda env remove -n a", "go on", "-y", "conda env list"),
    ("apt-get upgrade", "go on", "-y", "apt-get -y upgrade"),
    ("zypper install curl", "go on", "-n", "zypper -n install curl"),
    ("pacman -Syu", "go on", "--noconfirm", "pacman -Qs curl"),
    ("docker system prune", "go on", "-f", "docker system df"),
    ("gh repo delete a/b", "go on", "--yes", "gh repo view a/b"),
    ("gh pr create", "title", "--fill", "gh pr create --fill"),
    ("gh pr merge 7", "how to merge", "--squash", "gh pr merge 7 --squash"),
    ("svn commit", "editor", "-m", "svn commit -m x"),
    ("git config --edit", "editor", "edit tool", "git config --list"),
    ("git stash -p", "hunk", "name the files", "git stash list"),
    ("ansible-vault edit --vault-id p a.yml", "editor", "decrypted copy", "ansible-vault view --vault-id p a.yml"),
    ("python manage.py createsuperuser", "questions", "--noinput", "python manage.py createsuperuser --noinput"),
    ("python manage.py shell", "prompt", "-c", "python manage.py shell -c x"),
    ("pulumi up", "go on", "pulumi preview", "pulumi preview"),
    ("sam deploy --guided", "questions", "without `--guided`", "sam deploy"),
    ("poetry init", "questions", "-n", "poetry init -n"),
    ("fdisk /dev/sda", "prompt", "ask the user", "fdisk -l /dev/sda"),
    ("parted /dev/sda", "prompt", "-s", "parted /dev/sda print"),
    ("vault operator unseal", "key", "ask the user", "vault operator unseal KEY"),
]


@pytest.mark.parametrize(("command", "why", "step", "returns"), WAITS, ids=[f"{row[0]}, {row[3]}" for row in WAITS])
def test_what_waits_is_told_with_the_way_out(command: str, why: str, step: str, returns: str) -> None:
    """The reason is named, and the step makes it return; one option or argument more, and nothing is said."""
    found = find_wait(command.split())

    assert found is not None
    assert why in found.why
    assert step in found.step
    assert found.step.startswith("Stop it")
    assert find_wait(returns.split()) is None


@pytest.mark.parametrize(
    ("serves", "ends"),
    [
        ("python -m http.server 8000", "python -m http.client"),
        ("npm run dev", "npm run build"),
        ("tail -f log", "tail -n 5 log"),
        ("tail -n 5 --follow log", "tail log"),
        ("docker logs -f web", "docker logs web"),
        ("kubectl port-forward svc/a 1:1", "kubectl get svc"),
        ("ping host", "ping -c 3 host"),
        ("sleep 3600", "sleep 30"),
        ("vmstat 1", "vmstat 1 5"),
        ("tsc -w", "tsc"),
        ("python manage.py runserver", "python manage.py migrate"),
        ("uvicorn app:app", "pip install flask"),
        ("watch ls", "stopwatch"),
        ("streamlit run a.py", "streamlit version"),
        ("celery -A app worker", "celery -A app status"),
        ("etcd --data-dir d", "ls /var/lib/etcd"),
        ("vault server -dev", "vault status"),
        ("./gradlew bootRun", "./gradlew build"),
    ],
)
def test_what_runs_until_it_is_stopped_is_known(serves: str, ends: str) -> None:
    """Servers, followers and long sleeps never return; what looks like them does."""
    assert RUNS_ON.search(serves)
    assert not RUNS_ON.search(ends)


def test_the_option_for_a_password_file_is_known() -> None:
    """A program that asks for a password can read it from a file; what stands before the program changes nothing."""
    found = find_command_wait("nice -n 5 openssl pkcs12 -export -in a.crt -out a.p12")

    assert found is not None
    assert found.secret == "-passout file:{0}"
    assert find_command_wait("echo secret | openssl pkcs12 -export -in a.crt -passout stdin") is None
