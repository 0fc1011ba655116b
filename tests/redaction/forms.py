"""Forms in which secrets stand in traces, by class. § is a secret, ⏎ a line end."""

from __future__ import annotations

FORMS: dict[str, str] = {
    "options by name": r"""
        pg_dump --dbname=x --db-password=§
        mongodump --username admin --password § --db x
        keytool -genkey -alias a -keypass § -storepass changeit1§
        wpa_cli --psk § scan
        openssl pkcs12 -export -passout pass:§ -out x.p12
        ansible-playbook site.yml --extra-vars "ansible_become_pass=§"
        restic backup /srv --repo-password §
        gh auth refresh --oauth-token=§
        java -Djavax.net.ssl.keyStorePassword=§ -jar x.jar
        mvn deploy -Drepo.pass=§
        npm publish --otp-token §
        snyk auth --api-token=§
        consul acl bootstrap -http-token §
        cmdkey /generic:h /user:bob /password:§
        mstsc /v:h /pass:§""",
    "user and password in one word": r"""
        curl -s -u deploy:§ https://registry.acme.io/v2/_catalog
        curl --user=deploy:§ https://acme.io
        curl -ksu deploy:§ https://10.0.0.2/
        wget --proxy-user corp --proxy-password=§ http://x.io
        httpie --auth deploy:§ x.io/api
        xh -a deploy:§ x.io/api
        crane auth login --creds deploy:§ r.io
        buildah push --creds=deploy:§ img docker://r.io/img
        impacket-psexec corp/bob:§@10.0.0.7
        smbclient -U 'corp/bob%§' //h/share
        lftp -u deploy,§ ftp.acme.io
        rpcclient -U "bob%§" 10.0.0.7
        elasticdump --input=http://elastic:§@es:9200/i
        ab -A bob:§ http://x.io/""",
    "short options": r"""
        mysqldump -h db -u root -p§ shop
        mariadb -uroot -p'§' -e 'show tables'
        psql_wrapper -U bob -W § -h db
        podman login -u bob -p '§' quay.io
        helm registry login -u bob -p § r.io
        az login -u bob@x.io -p §
        oc login -u admin -p § https://api.x.io:6443
        mosquitto_sub -h b -u bob -P § -t '#'
        ldapsearch -x -D cn=admin -w § -b dc=x
        ldapadd -D "cn=admin,dc=x" -w '§' -f x.ldif
        redis-cli -h r -a § ping
        unzip -P § a.zip
        7z x -p§ a.7z
        rar a -hp§ a.rar x
        sshpass -p '§' ssh root@h
        snmpget -v3 -l authPriv -u bob -a SHA -A § -x AES -X § h 1.3
        ssh-keygen -t ed25519 -N '§' -f key
        pscp -pw § a bob@h:/x
        sqlcmd -S h -U sa -P § -Q 'select 1'
        ipmitool -H h -U ADMIN -P § power status
        hydra -l bob -p § ssh://h
        crackmapexec smb 10.0.0.7 -u bob -p §
        xfreerdp /v:h /u:bob /p:§ /cert:ignore""",
    "positional": r"""
        vault login §
        npm token create §
        poetry config pypi-token.pypi §
        cargo login --registry x §
        ngrok authtoken §
        redis-cli -h r AUTH §
        redis-cli CONFIG SET requirepass §
        rabbitmqctl change_password bob §
        net user bob § /add
        net use z: \\h\share § /user:bob
        aws configure set aws_secret_access_key §
        gcloud auth activate-refresh-token bob §
        nmcli device wifi connect Home password §
        htpasswd -bc .htpasswd bob §
        git config --global credential.token §
        pip config set global.password §
        composer config --global http-basic.repo.io bob §
        rclone config create x webdav user bob pass §
        setx DB_PASSWORD "§"
        doppler configure set token §
        pulumi config set --secret dbpw §""",
    "standard input": r"""
        echo "§" | docker login -u bob --password-stdin ghcr.io
        echo -n '§' | gh secret set DEPLOY_KEY
        printf '%s' '§' | podman secret create db -
        echo "bob:§" | sudo chpasswd
        echo '§' | sudo -S apt update
        sudo -S -k ls <<< "§"
        chpasswd <<< 'root:§'
        passwd --stdin bob <<< §
        printf '§\n§\n' | passwd bob
        echo § | kinit admin
        sudo chpasswd <<EOF⏎bob:§⏎EOF
        docker login -u bob --password-stdin <<EOF⏎§⏎EOF
        git credential approve <<EOF⏎protocol=https⏎username=bob⏎password=§⏎EOF
        echo § | cryptsetup luksOpen /dev/sda1 x
        wrangler secret put API <<< "§"
        echo "§" | gcloud secrets create db --data-file=-""",
    "stores": r"""
        kubectl create secret generic db --from-literal=user=bob --from-literal=pw=§
        kubectl -n x create secret docker-registry r --docker-username=bob --docker-password=§
        aws secretsmanager create-secret --name db --secret-string '§'
        aws secretsmanager put-secret-value --secret-id x --secret-string '{"user":"bob","pw":"§"}'
        aws ssm put-parameter --name x --value "§" --type SecureString
        vault kv put secret/db user=bob value=§
        vault write auth/userpass/users/bob password=§
        gh secret set TOKEN --body "§"
        glab variable set DEPLOY §
        heroku config:set SENDGRID=§ -a x
        fly secrets set COOKIE=§ PORT=8080
        railway variables --set "DB=§"
        az keyvault secret set --vault-name v -n db --value §
        docker run -e POSTGRES_PASSWORD=§ postgres:16
        docker run --env MYSQL_ROOT_PW=§ mysql
        terraform apply -var="db_pw=§"
        env ADMIN_PASS=§ ./run.sh
        export SMTP_PASS=§
        $env:DB_PW = "§"
        set DB_PASS=§
        ConvertTo-SecureString "§" -AsPlainText -Force
        circleci context store-secret x y §
        supabase secrets set STRIPE=§""",
    "nested": r"""
        bash -c "mysql -u root -p§ -e 'show tables'"
        ssh ops@h 'redis-cli -a § ping'
        docker exec -it db mysql -uroot -p§ shop
        kubectl exec -it pod -- psql "postgresql://bob:§@db/x"
        sudo -u postgres psql -c "ALTER USER bob WITH PASSWORD '§'"
        $ mysqladmin -uroot -p'§' status
        root@host:~# sshpass -p § scp a h:/b
        PS C:\> net user bob § /add
        Run `curl -u bob:§ https://x.io` first.
        - run: docker login -u bob -p § ghcr.io
        RUN curl -u bob:§ -o a https://x.io/a
        subprocess.run(["mysql", "-uroot", "-p§", "shop"])
        + sshpass -p § ssh root@h
        xargs -I{} curl -su bob:§ https://x.io/{}
        ```⏎vault login §⏎```
        mysql \⏎  -u root \⏎  -p§ \⏎  shop
        for h in a b; do sshpass -p '§' ssh root@$h uptime; done
        timeout 5 ldapwhoami -x -D cn=a -w § && echo ok""",
    "configuration": r"""
        spring.datasource.password=§
        db.pass = §
        "dbPass": "§",
        'pw' => '§',
        password = "§"  # prod
        <property name="password" value="§"/>
        <connectionString password="§" user="sa"/>
        <db-password>§</db-password>
        <entry key="api.secret">§</entry>
        env:⏎  - name: SMTP_PASS⏎    value: §
        { name = "DB_PASSWORD", value = "§" }
        {"Name":"DB_PASSWORD","Value":"§"}
        variable "admin_pw" {⏎  type = string⏎  default = "§"⏎}
        //registry.acme.io/:_password=§
        [pypi]⏎username = bob⏎password = §
        machine api.acme.io login bob password §
        db:5432:shop:bob:§
        https://bob:§@github.com
        requirepass §
        IdentityFile x⏎Password §
        kind: Secret⏎stringData:⏎  value: §
        psk=§
        smtp_sasl_password_maps bob:§@mail.acme.io
        ansible_ssh_pass: §
        ("password", "§"),
        [mysql]⏎user=root⏎password=§
        :password: §
        config.password = '§'
        define('DB_PASSWORD', '§');
        auth-user-pass bob §""",
    "calls": r"""
        conn = pymysql.connect("db", "bob", "§", "shop")
        session.auth = ("bob", "§")
        requests.post(u, auth=HTTPBasicAuth("bob", "§"))
        smtp.login("bob", "§")
        client.setPassword('§')
        builder.withPassword("§")
        new UsernamePasswordCredentials("bob", "§")
        new NetworkCredential("bob", "§")
        Credentials.basic("bob", "§")
        .basicAuth("bob", "§")
        axios.get(u, { auth: { username: 'bob', password: '§' } })
        jwt.sign(payload, '§')
        crypto.createHmac('sha256', '§')
        hmac.new(b'§', msg, 'sha256')
        Fernet(b'§')
        await page.fill('#password', '§')
        driver.find_element(By.ID, "password").send_keys("§")
        cy.get('input[name=password]').type('§')
        await page.type('input[name="password"]', "§")
        os.environ["DB_PW"] = "§"
        os.environ.setdefault("DB_PASSWORD", "§")
        authenticate(user, '§')
        expect(login('bob', '§'))
        db.auth("bob", "§")
        createUser({user: "bob", pwd: "§", roles: []})
        ssh.connect(h, username='bob', password='§')
        User(name="bob", passwd="§")
        NewStaticCredentials("bob", "§", "")""",
    "tables": r"""
        user,password,role⏎bob,§,admin⏎al,§,user
        user;passwort⏎bob;§
        user	pass⏎bob	§
        | name | pw |⏎|------|----|⏎| bob | §  |
         user | password⏎------+---------⏎ bob  | §
        +------+----------+⏎| user | password |⏎+------+----------+⏎| bob  | §     |
        USER    PASSWORD⏎bob     §
        INSERT INTO accounts (id, login, passwd) VALUES (1, 'bob', '§'), (2, 'al', '§');
        UPDATE users SET password = '§' WHERE id = 1;
        CREATE ROLE bob LOGIN PASSWORD '§';
        ALTER USER 'bob'@'%' IDENTIFIED BY '§';
        GRANT ALL ON x.* TO 'bob'@'h' IDENTIFIED BY '§';
        SET PASSWORD FOR 'bob'@'h' = PASSWORD('§');
        ALTER LOGIN sa WITH PASSWORD = N'§';
        SELECT crypt('§', gen_salt('bf'));""",
    "connections": r"""
        mysql://bob:§@db/shop
        amqps://bob:§@mq:5671/%2f
        redis://:§@r:6379/0
        Server=db;Database=x;User Id=bob;Password=§;
        Driver={ODBC Driver 18};Server=h;UID=bob;PWD=§
        jdbc:mysql://db/x?user=bob&password=§
        jdbc:oracle:thin:bob/§@//db:1521/x
        sqlplus bob/§@db/x
        bob:§@tcp(127.0.0.1:3306)/shop
        host=db user=bob password=§ dbname=x
        ftp://bob:§@ftp.acme.io/a
        redis:6379,password=§,ssl=True
        sftp://bob:§@h/x
        mongodb+srv://bob:§@c0.mongodb.net/x
        Endpoint=sb://x.servicebus.windows.net/;SharedAccessKeyName=a;SharedAccessKey=§=
        ldap://cn=a:§@h""",
    "sentences": r"""
        The password is § for now.
        Use the password "§" to log in.
        my password: §
        her pw = §
        The admin password was changed to §.
        Login: bob / §
        credentials: bob / §
        sign in as bob with §
        Password for root@h: §
        **Password:** `§`
        password → §
        Das Passwort lautet §
        Kennwort: §
        Le mot de passe est §
        mot de passe: §
        la contraseña es §
        La password è §
        a senha é §
        senha: §
        Wachtwoord: §
        hasło: §
        Hasło to §
        heslo je §
        şifre: §
        пароль — §
        Пароль: §
        密码是§
        密码：§
        パスワードは§です
        パスワード: §
        비밀번호: §
        كلمة المرور: §
        סיסמה: §
        mật khẩu: §
        lösenord: §
        salasana on §
        jelszó: §
        parolă: §
        κωδικός: §""",
    "web": r"""
        curl -b 'sid=§' https://x.io
        curl --cookie "auth=§; theme=dark" https://x.io
        curl -H 'Cookie: session=§' https://x.io
        curl -H "X-Auth-Token: §" https://x.io
        curl -H "Authorization: Token §" https://x.io
        curl -d 'user=bob&password=§' https://x.io/login
        curl -d '{"user":"bob","pw":"§"}' https://x.io/login
        curl -F pass=§ https://x.io
        Set-Cookie: JSESSIONID=§; Path=/; HttpOnly
        document.cookie = "token=§; path=/"
        requests.get(u, cookies={"session": "§"})
        {"name": "auth_token", "value": "§", "domain": ".x.io", "path": "/"}
        https://x.io/cb?code=§&state=x
        https://x.io/a?api_key=§
        https://x.io/reset?reset_token=§
        https://s.blob.core.windows.net/c/b?sv=2022-11-02&sp=r&sig=§%3D
        https://b.s3.amazonaws.com/k?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Signature=§
        https://d.cloudfront.net/x?Expires=1&Signature=§&Key-Pair-Id=K
        https://x.io/feed;jsessionid=§?x=1
        https://x.io/#access_token=§&token_type=bearer
        otpauth://totp/acme:bob?secret=§&issuer=acme
        X-Api-Key: §
        grant_type=password&username=bob&password=§
        {"refresh_token": "§", "expires_in": 3600}
        headers = {"X-Session-Token": "§"}""",
}

HARMLESS = r"""
    sk-circle-fade-dot12
    token: 'NUMBER42'
    password: ${DB_PASSWORD}
    curl --user "$NAME:$PW" https://x.io
    docker login --password-stdin ghcr.io
    echo "$TOKEN" | docker login -u bob --password-stdin ghcr.io
    if password == "":
    def login(user, password):
    raise ValueError("wrong password")
    password = getpass.getpass()
    passwords.txt was not found
    mkdir -p build/output2
    ssh -p 2222 deploy@h
    tar -xpf archive2.tar
    docker run -p 8080:80 -u 1000:1000 nginx:1.27
    grep -u user:name notes.txt
    pytest -k test_login_redirect2 -p no:cacheprovider
    kubectl get pods -l app=frontend2 -n prod-eu1
    kubectl create secret generic db --from-file=./db.env
    vault login -method=oidc
    gh secret list --repo acme/shop2
    git log --author=bob -S login2
    git checkout -b feature/login-2fa
    git clone git@github.com:acme/auth-service2.git
    actions/checkout@v4
    uses: docker/login-action@c94ce9fb468520275223c153574b00df6fe4bcc9
    npm install -g @acme/auth@2.1.0 token-types@5
    pip install python-jose==3.3.0 passlib[bcrypt]==1.7.4
    export PATH=$HOME/bin:/usr/local/go1.22/bin
    export NODE_ENV=production PORT=8080
    env GOOS=linux GOARCH=amd64 go build ./cmd/auth
    docker exec -it web1 bash
    sudo -u postgres psql -d shop2 -c 'select 1'
    psql -h localhost -U app -d shop2 -p 5433
    chown -R www-data:www-data /var/www/site1
    cp -p a1.txt b2.txt
    helm upgrade --set image.tag=1.2.3 web ./chart
    terraform apply -var region=eu-west-1 -var instance_type=t3.micro
    aws s3 cp s3://bucket-2/a.txt . --profile dev2
    redis-cli -h cache1 -p 6379 ping
    openssl x509 -in cert1.pem -noout
    ssh-keygen -t ed25519 -f ~/.ssh/id_ed25519
    ssh-keygen -l -f host_key2.pub
    jwt.decode(token, key, algorithms=["HS256"])
    hmac.new(key, msg, hashlib.sha256)
    crypto.createHash("sha256").update(data)
    connect("localhost", 5432, "shop_v2")
    login("admin_user1", password)
    setPassword(newPassword2)
    getByLabel("Password").fill(user.password)
    "integrity": "sha512-3Yk1LhTQ0bq6nLrV8f5u2cKQb5Yc2E4m9H0xWZJ7d1Pa8sRvTtG6oUeXyB4iNwKjMlSfCq9hDzAgOpErVb1u2w=="
    etag: "5d41402abc4b2a76b9719d911017c592"
    commit 9fceb02d0ae598e95dc970b74767f19372d61af8
    id: 6ba7b810-9dad-11d1-80b4-00c04fd430c8
    max_tokens: 4096
    tokens used: 128456
    token_type: bearer
    keyboard: qwertz
    primary_key = "order_id"
    public class PasswordEncoder {
    type: kubernetes.io/tls
    | field | type |⏎|---|---|⏎| password | string |
    name,password_hash_algorithm⏎bob,argon2id
    csrf_token()
    The password must have 12 characters, 1 digit and 1 sign.
    The token expires in 3600s, see auth.py:120.
    Log in with your account at https://x.io/login2 first.
    The login page uses OAuth2 and OpenID.
    Sign in with Google (OAuth2)
    das Passwort ist falsch
    mot de passe oublié
    пароль неверный
    session_id: ses_4f2a
    Cookie consent: accepted
    see credentials.md:12 and secrets/README2.md
    secret scan: 0 findings in 128 files
    api_key: str | None = None
    pass: 12, fail: 3
    12 passed, 1 failed in 3.21s
    PASS src/login.test.ts (5.2 s)
    compass: north2
    scott/tiger2.md
    user:name@host
"""
