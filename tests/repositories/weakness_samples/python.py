"""Samples for the rules about Python."""

from __future__ import annotations

from tests.repositories.weakness_samples import Samples


def py(finds: tuple[str, ...], leaves: tuple[str, ...]) -> Samples:
    return Samples("shop/app.py", finds, leaves)


SAMPLES = {
    "py-shell-true": py(
        (
            "import subprocess\nsubprocess.run(f'ls {folder}', shell=True)",
            "from subprocess import check_output as out\nout(command, shell=True)",
            "import subprocess as sp\nsp.Popen(args='tar ' + name, shell=True)",
        ),
        (
            "import subprocess\nsubprocess.run('ls | wc -l', shell=True)",
            "import subprocess\nsubprocess.run(['ls', folder])",
            "import subprocess\nsubprocess.run(command, shell=False)",
        ),
    ),
    "py-os-system": py(
        ("import os\nos.system('rm ' + path)", "import os\nos.popen(f'cat {path}')"),
        ("import os\nos.system('clear')", "import os\nos.system(CLEAR)", "import mine\nmine.system(f'{x}')"),
    ),
    "py-eval": py(
        ("eval(expression)", "exec(source, {})"),
        ("eval('1 + 1')", "import ast\nast.literal_eval(text)", "model.eval()", "frame.eval(question)"),
    ),
    "py-sql-built": py(
        (
            "cursor.execute(f\"SELECT * FROM users WHERE name = '{name}'\")",
            "db.execute('DELETE FROM t WHERE id = %s' % key)",
            "def f(c, a):\n    q = 'select a from b where c = ' + a\n    c.execute(q)",
            "connection.execute('UPDATE t SET a = {}'.format(value))",
        ),
        (
            "cursor.execute('SELECT * FROM users WHERE name = ?', (name,))",
            "cursor.execute(f'SELECT * FROM {TABLE} WHERE id = ?', (key,))",
            "pool.execute(f'job {number}')",
            "cursor.execute(query)",
        ),
    ),
    "py-path-from-request": py(
        (
            "from flask import request\nopen(request.args['file'])",
            "import os\ndef view(request):\n    name = request.GET['n']\n    return os.path.join(ROOT, name)",
            "from pathlib import Path\ndef view(request):\n    return Path('files') / Path(request.form.get('p'))",
        ),
        (
            "open(path)",
            "from flask import request\nopen(os.path.join(ROOT, secure_filename(request.args['file'])))",
            "import os\nos.path.join(request.folder, 'a')",
        ),
    ),
    "py-tar-extract-all": py(
        ("import tarfile\nwith tarfile.open(name) as tar:\n    tar.extractall(target)",),
        (
            "import tarfile\ntarfile.open(name).extractall(target, filter='data')",
            "import zipfile\nzipfile.ZipFile(name).extractall(target)",
        ),
    ),
    "py-url-from-request": py(
        (
            "import requests\nrequests.get(request.args['url'])",
            "import httpx\ndef f(request):\n    to = request.query_params['to']\n    return httpx.get(url=to)",
        ),
        ("import requests\nrequests.get('https://a.example/' + name)", "import requests\nrequests.get(url)"),
    ),
    "py-urlopen-any-scheme": py(
        (
            "import urllib.request\nurllib.request.urlopen(address)",
            "from urllib.request import urlretrieve\nurlretrieve(row['link'], 'f')",
        ),
        (
            "from urllib.request import urlopen\nurlopen('https://a.example')",
            "from urllib.request import urlopen\nurlopen(f'https://a.example/{name}')",
            "from urllib.request import urlopen, Request\nurlopen(Request(u))",
        ),
    ),
    "py-open-redirect": py(
        ("from flask import redirect, request\nredirect(request.args.get('next'))",),
        (
            "from flask import redirect\nredirect('/home')",
            "from flask import redirect, url_for\nredirect(url_for('x'))",
        ),
    ),
    "py-debug-server": py(
        ("from flask import Flask\napp = Flask('x')\napp.run(debug=True)",),
        ("from flask import Flask\napp = Flask('x')\napp.run(debug=False)", "import other\nother.run(debug=True)"),
    ),
    "py-mktemp": py(("import tempfile\ntempfile.mktemp()",), ("import tempfile\ntempfile.mkstemp()", "mktemp()")),
    "py-world-writable": py(
        ("import os\nos.chmod(path, 0o777)", "path.chmod(mode=0o666)"),
        ("import os\nos.chmod(path, 0o755)", "import os\nos.chmod(path, mode)", "import os\nos.chmod(path, 2)"),
    ),
    "py-unsafe-decoder": py(
        (
            "import pickle\npickle.loads(data)",
            "from pickle import load\nload(file)",
            "import joblib\njoblib.load(path)",
        ),
        (
            "import pickle\npickle.dumps(value)",
            "import json\njson.loads(data)",
            "import pickle\npickle.loads(pickle.dumps(value))",
        ),
    ),
    "py-unsafe-yaml": py(
        (
            "import yaml\nyaml.load(text)",
            "import yaml\nyaml.load(text, Loader=yaml.Loader)",
            "import yaml\nyaml.unsafe_load(t)",
        ),
        (
            "import yaml\nyaml.safe_load(text)",
            "import yaml\nyaml.load(text, Loader=yaml.SafeLoader)",
            "from yaml import load, CSafeLoader\nload(text, CSafeLoader)",
        ),
    ),
    "py-weak-hash": py(
        ("import hashlib\nhashlib.md5(data)", "import hashlib\nhashlib.new('SHA1', data)"),
        (
            "import hashlib\nhashlib.sha256(data)",
            "import hashlib\nhashlib.md5(data, usedforsecurity=False)",
            "import hashlib\nhashlib.new('sha512')",
            "md5(data)",
        ),
    ),
    "py-weak-cipher": py(
        (
            "from Crypto.Cipher import DES\nDES.new(key)",
            "from Crypto.Cipher import AES\nAES.new(key, AES.MODE_ECB)",
            "from cryptography.hazmat.primitives.ciphers import algorithms\nalgorithms.ARC4(key)",
        ),
        (
            "from Crypto.Cipher import AES\nAES.new(key, AES.MODE_GCM)",
            "from cryptography.hazmat.primitives.ciphers import algorithms\nalgorithms.AES(key)",
        ),
    ),
    "py-guessable-secret": py(
        (
            "import random\ntoken = random.randint(0, 9)",
            "import random\nself.session_id = ''.join(random.choice(letters) for _ in range(8))",
            "from random import getrandbits\nrow['api_key'] = hex(getrandbits(64))",
        ),
        (
            "import random\ndelay = random.random()",
            "import secrets\ntoken = secrets.token_hex()",
            "import random\ntoken = random.SystemRandom().choice(letters)",
        ),
    ),
    "py-unverified-tls": py(
        (
            "import requests\nrequests.get(url, verify=False)",
            "import ssl\nssl._create_unverified_context()",
            "import ssl\ncontext.verify_mode = ssl.CERT_NONE",
            "context.check_hostname = False",
            "import requests\nsession = requests.Session()\nsession.post(url, verify=False)",
        ),
        (
            "import requests\nrequests.get(url, verify=path)",
            "jwt.check(token, verify=False)",
            "import ssl\ncontext.verify_mode = ssl.CERT_REQUIRED",
        ),
    ),
    "py-any-host-key": py(
        ("import paramiko\nclient.set_missing_host_key_policy(paramiko.AutoAddPolicy())",),
        ("import paramiko\nclient.set_missing_host_key_policy(paramiko.RejectPolicy())",),
    ),
    "py-unsigned-token": py(
        (
            "import jwt\njwt.decode(token, options={'verify_signature': False})",
            "import jwt\njwt.decode(token, verify=False)",
        ),
        (
            "import jwt\njwt.decode(token, key, algorithms=['HS256'])",
            "import jwt\njwt.decode(token, key, options={'verify_exp': False})",
        ),
    ),
    "py-xml-entities": py(
        (
            "from lxml import etree\netree.XMLParser(resolve_entities=True)",
            "import lxml.etree\nlxml.etree.XMLParser(no_network=False)",
        ),
        (
            "from lxml import etree\netree.XMLParser(resolve_entities=False)",
            "from lxml import etree\netree.XMLParser()",
        ),
    ),
    "py-unescaped-markup": py(
        (
            "from markupsafe import Markup\nMarkup(f'<b>{name}</b>')",
            "from django.utils.safestring import mark_safe\nmark_safe('<b>' + name)",
            "from jinja2 import Environment\nEnvironment(autoescape=False)",
        ),
        (
            "from markupsafe import Markup\nMarkup('<b>hello</b>')",
            "from jinja2 import Environment\nEnvironment(autoescape=True)",
            "from markupsafe import Markup\nMarkup('<b>{}</b>')",
        ),
    ),
    "py-template-built": py(
        (
            "from flask import render_template_string, request\nrender_template_string('Hi ' + request.args['n'])",
            "from jinja2 import Template\nTemplate(f'Hello {name}')",
        ),
        (
            "from jinja2 import Template\nTemplate('Hello {{ name }}')",
            "from flask import render_template\nrender_template('a.html')",
        ),
    ),
    "py-format-from-request": py(
        ("from flask import request\nrequest.args['t'].format(user=user)",),
        ("'Hello {}'.format(request.args['n'])", "template.format(user)"),
    ),
    "py-mass-assignment": py(
        (
            "from flask import request\nUser(**request.json)",
            "def f(request):\n    d = request.POST\n    User.objects.create(**d)",
        ),
        ("User(**settings)", "User(name=request.json['name'])", "url.include_query_params(**request.query_params)"),
    ),
    "py-slow-pattern": py(
        (
            "import re\nre.compile(r'(a+)+$')",
            "import re\nre.match(r'^(\\w+\\s?)*$', text)",
            "import re\nre.sub(r'(?:x*)*y', '', t)",
        ),
        (
            "import re\nre.compile(r'(a+b)+')",
            "import re\nre.compile(r'(?:,\\s*\\w+)*')",
            "import re\nre.compile(r'[(a+)+]')",
            "import re\nre.compile(r'(a+)?')",
        ),
    ),
}
