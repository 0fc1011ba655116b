"""Samples for the rules about Go, Java and its kin, PHP, Ruby, C and Rust."""

from __future__ import annotations

from tests.repositories.weakness_samples import Samples


def go(finds: tuple[str, ...], leaves: tuple[str, ...]) -> Samples:
    return Samples("shop/main.go", finds, leaves)


def java(finds: tuple[str, ...], leaves: tuple[str, ...]) -> Samples:
    return Samples("shop/App.java", finds, leaves)


def php(finds: tuple[str, ...], leaves: tuple[str, ...]) -> Samples:
    return Samples("shop/app.php", finds, leaves)


def ruby(finds: tuple[str, ...], leaves: tuple[str, ...]) -> Samples:
    return Samples("shop/app.rb", finds, leaves)


def c(finds: tuple[str, ...], leaves: tuple[str, ...]) -> Samples:
    return Samples("shop/app.c", finds, leaves)


def rust(finds: tuple[str, ...], leaves: tuple[str, ...]) -> Samples:
    return Samples("shop/main.rs", finds, leaves)


SAMPLES = {
    "go-exec-shell": go(
        ('exec.Command("sh", "-c", command)', 'exec.CommandContext(ctx, "/bin/bash", "-c", "ls " + dir)'),
        ('exec.Command("sh", "-c", "ls | wc -l")', 'exec.Command("git", "-c", value)'),
    ),
    "go-exec-variable": go(
        ("exec.Command(tool, args...)", "exec.CommandContext(ctx, cfg.tool)"),
        ('exec.Command("git", args...)', "exec.Command(os.Args[0])", "exec.Command(ToolName)"),
    ),
    "go-sql-built": go(
        (
            'db.Query(fmt.Sprintf("SELECT a FROM b WHERE c = %s", c))',
            'db.ExecContext(ctx, "DELETE FROM a WHERE b = " + b)',
        ),
        ('db.Query("SELECT a FROM b WHERE c = ?", c)', 'log.Exec(fmt.Sprintf("done %s", c))'),
    ),
    "go-weak-hash": go(
        ('import "crypto/md5"\nfunc f() { md5.New() }',),
        ('import "crypto/sha256"\nfunc f() { sha256.New() }', "md5.New()"),
    ),
    "go-weak-cipher": go(
        ('import "crypto/des"\nfunc f() { des.NewCipher(k) }',), ('import "crypto/aes"\nfunc f() { aes.NewCipher(k) }',)
    ),
    "go-unverified-tls": go(
        ("&tls.Config{InsecureSkipVerify: true}", "cb := ssh.InsecureIgnoreHostKey()"),
        ("&tls.Config{InsecureSkipVerify: false}",),
    ),
    "go-guessable-secret": go(
        ('import "math/rand"\nfunc f() { token := fmt.Sprint(rand.Intn(9)) }',),
        (
            'import "math/rand"\nfunc f() { delay := rand.Intn(9) }',
            'import "crypto/rand"\nfunc f() { token := rand.Int(r, m) }',
        ),
    ),
    "go-template-unescaped": go(
        ('import "html/template"\nfunc f() { template.HTML(text) }',),
        (
            'import "html/template"\nfunc f() { template.HTML("<b>") }',
            'import "text/template"\nfunc f() { template.HTML(text) }',
        ),
    ),
    "go-world-writable": go(
        ("os.Chmod(path, 0777)", "f.Chmod(0o666)"), ("os.Chmod(path, 0755)", "os.MkdirAll(path, 0o777)")
    ),
    "go-path-from-request": go(
        ('filepath.Join(root, r.URL.Query().Get("f"))', 'os.Open("x/" + r.FormValue("f"))'),
        ("filepath.Join(root, name)", 'filepath.Join(root, filepath.Base(r.FormValue("f")))'),
    ),
    "go-url-from-request": go(
        ('import "net/http"\nfunc f() { http.Get(r.FormValue("u")) }',),
        ('import "net/http"\nfunc f() { http.Get(u) }',),
    ),
    "go-open-redirect": go(
        ('import "net/http"\nfunc f() { http.Redirect(w, r, r.FormValue("to"), 302) }',),
        ('import "net/http"\nfunc f() { http.Redirect(w, r, "/home", 302) }',),
    ),
    "go-format-variable": go(
        ("fmt.Printf(text)", "fmt.Errorf(cfg.text)"),
        ('fmt.Printf("%s", text)', "fmt.Println(text)", "fmt.Printf(Usage)"),
    ),
    "jvm-sql-built": java(
        (
            'st.executeQuery("SELECT * FROM t WHERE a = " + a)',
            'em.createQuery(String.format("select x from X where y = %s", y))',
        ),
        ('c.prepareStatement("SELECT * FROM t WHERE a = ?")',),
    ),
    "jvm-exec-built": java(
        ('Runtime.getRuntime().exec("ls " + dir)',), ('Runtime.getRuntime().exec("ls")', 'pool.exec("ls " + dir)')
    ),
    "jvm-weak-hash": java(('MessageDigest.getInstance("MD5")',), ('MessageDigest.getInstance("SHA-256")',)),
    "jvm-weak-cipher": java(
        ('Cipher.getInstance("AES/ECB/PKCS5Padding")', 'Cipher.getInstance("AES")'),
        ('Cipher.getInstance("AES/GCM/NoPadding")',),
    ),
    "jvm-unsafe-decoder": java(
        ("new ObjectInputStream(in)",), ("new ObjectOutputStream(out)", "// new ObjectInputStream(in)")
    ),
    "jvm-guessable-secret": java(
        ('String token = "" + Math.random();',), ("double delay = Math.random();", "byte[] token = new SecureRandom();")
    ),
    "jvm-csrf-off": java(("http.csrf().disable()", "http.csrf(c -> c.disable())"), ("http.csrf(withDefaults())",)),
    "php-sql-built": php(
        ('mysqli_query($db, "SELECT * FROM t WHERE a = $a")', "$pdo->query('SELECT a FROM b WHERE c = ' . $c)"),
        ("$pdo->prepare('SELECT a FROM b WHERE c = ?')",),
    ),
    "php-command-from-request": php(
        ('system("ls " . $_GET["d"])',), ('system("ls " . escapeshellarg($_GET["d"]))', 'system("ls")')
    ),
    "php-include-from-request": php(('include($_GET["page"] . ".php");',), ('include("a.php");',)),
    "php-echo-request": php(('echo "Hello " . $_GET["n"];',), ('echo htmlspecialchars($_GET["n"]);', "echo $name;")),
    "php-unserialize": php(
        ("unserialize($data)",), ("unserialize($data, ['allowed_classes' => false])", "json_decode($data)")
    ),
    "php-eval": php(("eval($code);",), ("eval('1;');", "$x->eval($code);", "# eval($code);")),
    "rb-command-built": ruby(
        ('system("ls #{dir}")', "`ls #{dir}`", "%x(ls #{dir})"), ('system("ls", dir)', "system('ls #{dir}')")
    ),
    "rb-unsafe-decoder": ruby(("Marshal.load(data)", "YAML.load(text)"), ("YAML.safe_load(text)", "JSON.parse(text)")),
    "rb-sql-built": ruby(
        ("User.where(\"name = '#{name}'\")",), ('User.where("name = ?", name)', "User.where(name: name)")
    ),
    "rb-html-safe": ruby(('"<b>#{name}</b>".html_safe',), ('"<b>x</b>".html_safe',)),
    "c-unbounded-copy": c(
        ("strcpy(to, from);", "gets(line);", 'sprintf(to, "a %s", from);'),
        ('strcpy(to, "abc");', "strncpy(to, from, 9);", 'sprintf(to, "%d", n);'),
    ),
    "c-format-variable": c(
        ("printf(text);", "fprintf(stderr, row->text);"), ('printf("%s", text);', 'fprintf(stderr, "x");')
    ),
    "c-system-variable": c(("system(command);", 'popen(command, "r");'), ('system("ls");',)),
    "c-temporary-name": c(("char *n = tmpnam(0);",), ("int f = mkstemp(n);",)),
    "rs-shell-built": rust(
        ('Command::new("sh").arg("-c").arg(format!("ls {}", d))',),
        ('Command::new("ls").arg(d)', 'Command::new("sh").arg("-c").arg("ls")'),
    ),
    "rs-unverified-tls": rust(("b.danger_accept_invalid_certs(true)",), ("b.danger_accept_invalid_certs(false)",)),
}
