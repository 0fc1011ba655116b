"""Which command lines wait or look how far something is: in the shell, whatever agent runs it."""

from __future__ import annotations

import time

import pytest

from agentsignals.shell.outputs import is_log, is_polling

LOOKS = """
sleep 30
sleep 60 && gh run list --limit 3
sleep 10; tail -20 /tmp/server.log
gh run watch 123 --exit-status
gh run view 7
gh run view 7 --log-failed | tail -50
gh pr checks 12
timeout 600 gh run watch 5
kubectl get pods
kubectl -n prod get pods -o wide
kubectl rollout status deploy/x
kubectl logs -f pod
docker ps
docker compose ps
docker compose -f a.yml logs web --tail 20
docker logs web 2>&1 | tail -20
ps aux | grep node
ps aux | grep -v grep | grep python
tail -50 server.log
tail -f /var/log/syslog
cat nohup.out
curl -s localhost:3000/health
curl -sf http://127.0.0.1:8080/ > /dev/null && echo up
curl -s https://api.example.com/healthz
until curl -s localhost:8000; do sleep 1; done
while ! nc -z localhost 5432; do sleep 1; done
cd app && sleep 5 && tail -5 out.log
systemctl status nginx
sudo systemctl is-active nginx
aws ecs describe-services --cluster x
pgrep -f vite
cat /tmp/claude/tasks/b1.output
wc -l train.log
grep -c epoch logs/train.txt
nvidia-smi
lsof -i :3000
glab ci status
jobs
heroku logs --tail
gh api repos/me/shop/actions/runs/7
aws cloudformation wait stack-create-complete --stack-name shop
while true; do date; sleep 60; done
Get-Content app.log -Wait
cat logs/app.txt
tail build/logs/run-1
cat /var/log/nginx/access.1
grep -i warning /var/log/nginx/access.log.1
jq .level events.log.json
"""
DEEDS = """
make
make build
pytest -q
grep -rn foo src
cat a.py
tail -20 src/a.py
head -5 README.md
sleep 2 && pytest -q
sleep 1; make
gh pr create --title x
gh run rerun 7
gh issue view 3
gh pr merge 3
kubectl apply -f x.yml
kubectl delete pod logs
kubectl exec pod -- ls
docker build .
docker compose up -d
docker exec web ps
docker run x ps
curl -X POST localhost:3000/api -d '{}'
curl https://example.com/data.json
curl -sL https://raw.githubusercontent.com/a/b/readme.md
git status
git log
git log --oneline
ls
cat login.py
cat src/blog/post.py
grep -n login src/app.py
npm run dev > server.log
npm test 2>&1 | tail -20
sed -n 1,40p app/logging.py
echo hi
psql -c 'select 1'
aws s3 cp a b
systemctl restart nginx
cat CHANGELOG.md
python -c "import time; time.sleep(3)"
cat catalog.json
cat changelog/2.md
gh api repos/me/shop/actions/runs/7/rerun -X POST
sleep 5 && rm -rf build
tail -5 a.log > notes.md
cat lib/log.ts
tail -40 tests/test_log.py
cat src/log/handler.go
head docs/log/README.md
cat dialogs/x.json
grep -rn log src
grep -n error.log config.py
jq .log package.json
sed -n /log/p a.py
"""


@pytest.mark.parametrize("command", LOOKS.strip().splitlines())
def test_a_line_that_waits_or_looks(command: str) -> None:
    assert is_polling(command)


@pytest.mark.parametrize("command", DEEDS.strip().splitlines())
def test_a_line_that_does_something_or_reads_what_does_not_run(command: str) -> None:
    assert not is_polling(command)


@pytest.mark.parametrize(
    ("path", "is_one"),
    [
        (r"C:\app\logs\today.txt", True),
        ("build/nohup.out", True),
        ("logs/web/run.3.jsonl", False),  # it may be data of that name: a dot more than an ending is not read
        ("app/logs.py", False),
        ("src/log/handler.go", False),
        ("src/catalog.txt", False),
        ("server.log.ts", False),
    ],
)
def test_a_log_is_known_by_its_ending_or_its_folder(path: str, is_one: bool) -> None:
    assert is_log(path) is is_one


def test_a_long_line_costs_no_more_than_its_length() -> None:
    started = time.process_time()
    for text in ("sleep 1; " * 40_000, "kubectl " + "get " * 900, "tail " + "a.log " * 600, "log" * 1300):
        is_polling(text)
    for path in ("/log" * 9_000, "/log-" * 9_000 + ".", "log." * 9_000):
        is_log(path * 100)
    assert time.process_time() - started < 0.5
