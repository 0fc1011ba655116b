"""Samples for the rules about shells, containers, workflows and secrets."""

from __future__ import annotations

from tests.repositories.weakness_samples import Samples


def sh(finds: tuple[str, ...], leaves: tuple[str, ...]) -> Samples:
    return Samples("tools/set-up.sh", finds, leaves)


def docker(finds: tuple[str, ...], leaves: tuple[str, ...]) -> Samples:
    return Samples("Dockerfile", finds, leaves)


def flow(finds: tuple[str, ...], leaves: tuple[str, ...]) -> Samples:
    return Samples(".github/workflows/test.yml", finds, leaves)


KEY = "-----BEGIN " + "PRIVATE KEY-----"
"""In two parts, so that nobody's scanner takes this file for one with a key."""

SAMPLES = {
    "sh-download-and-run": sh(
        (
            "curl -fsSL https://a.example/i.sh | sh",
            "wget -qO- https://a.example | sudo bash",
            "bash <(curl -s https://a.example)",
            'sh -c "$(curl -fsSL https://a.example)"',
        ),
        (
            "curl -o i.sh https://a.example/i.sh",
            "curl https://a.example | jq .",
            "# curl https://a.example | sh",
            "echo 'curl https://a.example | sh'",
        ),
    ),
    "sh-world-writable": sh(
        ("chmod 777 data", "chmod -R 0666 data", "chmod a+rw x", "chmod o+w x"),
        ("chmod 755 run", "chmod +x run", "chmod u+w x"),
    ),
    "sh-eval": sh(('eval "$1"', "if x; then eval $COMMAND; fi"), ('eval "$(ssh-agent -s)"', "echo eval", "# eval $x")),
    "sh-unverified-tls": sh(
        (
            "curl -k https://a.example",
            "curl -sSk https://a.example",
            "wget --no-check-certificate https://a.example",
            "ssh -o StrictHostKeyChecking=no host",
        ),
        ("curl -s https://a.example", "curl --keepalive-time 2 https://a.example", "ssh host"),
    ),
    "sh-known-temporary": sh(
        ("make > /tmp/log.txt",), ('make > "$(mktemp)"', "make > /tmp/log.$$", "cat /tmp/log.txt")
    ),
    "sh-password-in-command": sh(
        ("mysql -u app -phunter22 shop", "sshpass -p hunter22 ssh host", "curl -u app:hunter22 https://a.example"),
        ("mysql -u app -p shop", "curl -u app https://a.example", 'curl -u "app:$WORD" https://a.example'),
    ),
    "docker-no-user": docker(
        (
            'FROM node:22\nCOPY . .\nCMD ["node", "x.js"]',
            "FROM a AS b\nUSER app\nFROM c\nENTRYPOINT x",
            "FROM a\nUSER root\nCMD x",
        ),
        (
            "FROM node:22\nUSER node\nCMD x",
            "FROM a AS b\nRUN make\nFROM gcr.io/distroless/x:nonroot\nCMD x",
            "FROM node:22\nRUN make",
        ),
    ),
    "docker-secret-in-image": docker(
        ("FROM a\nENV DB_PASSWORD=hunter22", 'FROM a\nARG API_KEY="k9f8a7s6"'),
        ("FROM a\nARG API_KEY", "FROM a\nENV DB_PASSWORD=$DB_PASSWORD", "FROM a\nENV DB_HOST=db"),
    ),
    "workflow-run-interpolation": flow(
        (
            "jobs:\n  a:\n    steps:\n      - run: echo ${{ github.event.issue.title }}",
            "jobs:\n  a:\n    steps:\n      - name: x\n        run: |\n          git log\n          git checkout "
            "${{ github.head_ref }}\n",
        ),
        (
            "jobs:\n  a:\n    steps:\n      - run: echo $T\n        env:\n          T: ${{ github.event.issue.title }}",
            "jobs:\n  a:\n    steps:\n      - run: |\n          echo ${{ github.sha }}\n      - name: "
            "${{ github.head_ref }}",
            "jobs:\n  a:\n    steps:\n      - run: echo ${{ github.event.pull_request.number }}",
        ),
    ),
    "workflow-target-checkout": flow(
        ("on: pull_request_target\njobs:\n  a:\n    with:\n      ref: ${{ github.event.pull_request.head.sha }}",),
        (
            "on: pull_request\njobs:\n  a:\n    with:\n      ref: ${{ github.event.pull_request.head.sha }}",
            "on: pull_request_target",
        ),
    ),
    "container-privileged": Samples(
        "deploy/compose.yaml",
        ("services:\n  a:\n    privileged: true", "services:\n  a:\n    volumes:\n      - /var/run/docker.sock:/s"),
        ("services:\n  a:\n    privileged: false", "services:\n  a:\n    # privileged: true\n    image: b"),
    ),
    "tf-open-to-all": Samples(
        "main.tf",
        ('ingress {\n  from_port = 22\n  cidr_blocks = ["0.0.0.0/0"]\n}', 'acl = "public-read"'),
        ('egress {\n  cidr_blocks = ["0.0.0.0/0"]\n}', 'ingress {\n  cidr_blocks = ["10.0.0.0/8"]\n}'),
    ),
    "any-private-key": Samples(
        "conf/key.py", (f'KEY = """{KEY}\nMIIEvQIBADANBgkq\n"""',), (f'if text.startswith("{KEY}"):',)
    ),
    "any-token": Samples(
        "conf/set.ts",
        ("const k = 'AKIA" + "QYLPMN5HX3RT7ZKC'", "// ghp_" + "q8Zr2LmX7vKp4TnYw9BcDf3GhJk6SsQa1We5"),
        ("const k = 'AKIA" + "IOSFODNN7EXAMPLE'", "const k = process.env.KEY", "const k = 'ghp_short'"),
    ),
    "any-password": Samples(
        "conf/set.ts",
        ("const password = 'h7nter22x'", "{ apiKey: 'k9f8a7s6d5' }"),
        (
            "const password = process.env.P",
            "const password = 'your-password1'",
            "{ apiKey: '' }",
            "password: 'Password'",
        ),
    ),
    "any-address-with-password": Samples(
        "conf/set.py",
        ("URL = 'postgres://app:h7nter22@db1.shop.net/x'",),
        (
            "URL = 'postgres://app:password@localhost/x'",
            "URL = f'postgres://app:{word}@db1.shop.net/x'",
            "URL = 'https://shop.net/a:b@c'",
        ),
    ),
}
