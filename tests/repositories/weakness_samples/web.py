"""Samples for the rules about JavaScript, TypeScript and pages."""

from __future__ import annotations

from tests.repositories.weakness_samples import Samples

CP = "import { exec, spawn } from 'child_process';\n"


def ts(finds: tuple[str, ...], leaves: tuple[str, ...]) -> Samples:
    return Samples("shop/app.ts", finds, leaves)


def page(finds: tuple[str, ...], leaves: tuple[str, ...]) -> Samples:
    return Samples("shop/index.html", finds, leaves)


SAMPLES = {
    "js-exec-built": ts(
        (CP + "exec(`ls ${folder}`)", CP + "execSync('rm ' + name)", CP + "exec(\n  prefix + ' -v'\n)"),
        (
            CP + "exec('ls -l')",
            "const m = pattern.exec(`a ${b}`)",
            CP + "db.exec(`x ${y}`)",
            CP + "// exec(`ls ${folder}`)\n",
            CP + "exec(`ls ${ROOT_FOLDER}`)",
        ),
    ),
    "js-spawn-shell": ts(
        (CP + "spawn(command, args, { shell: true })", CP + "execFile(tool, [name], { cwd, shell: true })"),
        (
            CP + "spawn('npm', args)",
            CP + "spawn(command, args, { shell: false })",
            CP + "spawn('npm start', { shell: true })",
        ),
    ),
    "js-eval": ts(
        ("eval(text)", "const f = new Function('a', body)", "eval(`(${text})`)"),
        ("eval('1 + 1')", "frame.eval(text)", "const f = new Function('return this')", "retrieval(text)"),
    ),
    "js-run-in-context": ts(
        ("import vm from 'vm';\nvm.runInNewContext(code, {})",), ("import vm from 'vm';\nvm.isContext(x)",)
    ),
    "js-sql-built": ts(
        (
            "db.query(`SELECT * FROM users WHERE id = ${id}`)",
            "await pool.execute('DELETE FROM t WHERE a = ' + a)",
            "db.prepare<Row[]>(\n  `UPDATE t SET a = '${a}'`)",
        ),
        (
            "db.query('SELECT * FROM users WHERE id = $1', [id])",
            "sql`SELECT * FROM t WHERE id = ${id}`",
            "db.query(`SELECT * FROM ${TABLE} WHERE id = ?`)",
            "log.run(`selected ${n}`)",
        ),
    ),
    "js-path-from-request": ts(
        ("res.sendFile(path.join(root, req.params.name))", "fs.readFileSync(`./files/${req.query.f}`)"),
        ("path.join(root, name)", "path.join(root, path.basename(req.params.name))", "path.join(req.folder, 'a')"),
    ),
    "js-format-built": ts(
        ("console.log(`failed ${name}:`, error)", "util.format(`${a} %s`, b)"),
        ("console.log(`failed ${name}`)", "console.log('failed', name, error)", "console.log(`at ${FILE}`, error)"),
    ),
    "js-slow-pattern": ts(
        ("const p = /^(a+)+$/;", "new RegExp('(\\\\d+)*x')", "x.match(/(?:\\w+\\s?)*$/)"),
        ("const p = /^(a+b)+$/;", "const n = (a+b)*c / d / e;", "const u = 'http://a.example/(a+)+/x';"),
    ),
    "js-pattern-built": ts(
        ("new RegExp(`^${word}$`)", "new RegExp('^' + word)", "new RegExp(req.query.q, 'i')"),
        ("new RegExp('^a$')", "new RegExp(`^${escapeRegExp(word)}$`)", "new RegExp(pattern)"),
    ),
    "js-weak-hash": ts(("crypto.createHash('md5')", 'createHash("SHA1")'), ("crypto.createHash('sha256')",)),
    "js-weak-cipher": ts(
        (
            "crypto.createCipher('aes192', k)",
            "crypto.createCipheriv('aes-128-ecb', k, null)",
            "createDecipheriv('des-cbc', k, i)",
        ),
        ("crypto.createCipheriv('aes-256-gcm', k, i)",),
    ),
    "js-guessable-secret": ts(
        ("const resetToken = Math.random().toString(36)", "{ sessionId: 's' + Math.random() }"),
        ("const delay = Math.random() * 100", "const token = crypto.randomUUID()"),
    ),
    "js-unverified-tls": ts(
        ("new https.Agent({ rejectUnauthorized: false })", "process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0'"),
        ("new https.Agent({ rejectUnauthorized: true })",),
    ),
    "js-unsigned-token": ts(
        ("jwt.verify(t, k, { algorithms: ['none'] })",), ("jwt.verify(t, k, { algorithms: ['RS256'] })",)
    ),
    "js-html-built": ts(
        (
            "box.innerHTML = `<b>${name}</b>`;",
            "box.innerHTML = '<b>' + name;",
            "box.innerHTML = data.text;",
            "box.insertAdjacentHTML('beforeend', `<i>${x}</i>`)",
        ),
        (
            "box.innerHTML = '';",
            "box.textContent = `${name}`;",
            "box.innerHTML = DOMPurify.sanitize(name);",
            "box.innerHTML = `<b>x</b>`;",
        ),
    ),
    "js-document-write": page(
        ("<script>document.write('<p>' + name)</script>", "<script>document.write(location.hash)</script>"),
        ("<script>document.write('<p>hi</p>')</script>", "<!-- document.write('<p>' + name) -->"),
    ),
    "js-react-html": Samples(
        "shop/view.tsx",
        ("<div dangerouslySetInnerHTML={{ __html: text }} />",),
        (
            "<div dangerouslySetInnerHTML={{ __html: '<b>x</b>' }} />",
            "<div dangerouslySetInnerHTML={{ __html: sanitize(text) }} />",
            "<style dangerouslySetInnerHTML={{ __html: STYLES }} />",
        ),
    ),
    "js-vue-html": Samples(
        "shop/view.vue", ('<p v-html="text"></p>',), ('<p v-text="text"></p>', '<p v-html="sanitized(text)"></p>')
    ),
    "js-replaced-once": ts(
        ("text.replace('<', '&lt;')", 'text.replace("\'", "")', "name.replace('../', '')"),
        ("text.replace(/</g, '&lt;')", "text.replaceAll('<', '&lt;')", "text.replace('a', 'b')"),
    ),
    "js-mass-assignment": ts(
        ("Object.assign(user, req.body)", "await User.create(req.body)", "new User(req.body)"),
        ("Object.assign(user, { name: req.body.name })", "User.create({ name })"),
    ),
    "js-prototype-key": ts(
        ("settings[req.params.key] = value", "tree[req.body.a][name] = 1"),
        ("settings[key] = value", "if (a[req.query.k] === 1) {}"),
    ),
    "js-open-redirect": ts(
        (
            "res.redirect(req.query.next)",
            "res.redirect(302, req.query.next)",
            "window.location.href = params.get('to')",
        ),
        ("res.redirect('/home')", "window.location.href = '/home'"),
    ),
    "js-url-from-request": ts(
        ("await fetch(req.query.url)", "axios.get(`${req.body.host}/x`)"),
        ("await fetch(`/api/${req.query.id}`)", "prefetch(req.query.url)"),
    ),
    "js-xss-in-answer": ts(
        ("res.send(`<p>${req.query.q}</p>`)", "res.end('Hello ' + req.params.name)"),
        ("res.send({ q: req.query.q })", "res.send(`<p>${name}</p>`)", "res.send(`<p>${escapeHtml(req.query.q)}</p>`)"),
    ),
    "js-message-to-anybody": ts(
        ("window.parent.postMessage({ token }, '*')",),
        ("window.parent.postMessage({ token }, origin)", "worker.postMessage(x)"),
    ),
    "js-any-origin-with-cookies": ts(
        ("app.use(cors({ origin: true, credentials: true }))",),
        ("app.use(cors({ origin: 'https://a.example', credentials: true }))", "app.use(cors({ origin: '*' }))"),
    ),
    "html-no-integrity": page(
        (
            '<script src="https://cdn.a.example/x.js"></script>',
            "<link rel='stylesheet' href='//cdn.a.example/x.css'>",
            '<script\n  defer\n  src="https://cdn.a.example/x.js"></script>',
        ),
        (
            '<script src="/x.js"></script>',
            '<script src="https://cdn.a.example/x.js" integrity="sha384-x"></script>',
            '<link rel="icon" href="https://cdn.a.example/x.png">',
            '<!-- <script src="https://cdn.a.example/x.js"></script> -->',
        ),
    ),
    "html-plaintext-link": page(
        ('<a href="http://shop.net/a">a</a>', "<form action='http://shop.net/login'>"),
        (
            '<a href="https://shop.net/a">a</a>',
            '<a href="http://localhost:3000">a</a>',
            '<svg xmlns="http://www.w3.org/2000/svg">',
        ),
    ),
    "html-script-address": page(
        ("<a href=\"javascript:go('{{ name }}')\">x</a>",),
        ('<a href="javascript:void(0)">x</a>', '<a href="/{{ name }}">x</a>'),
    ),
}
