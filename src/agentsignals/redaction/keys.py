"""Keys that their shape gives away: by a beginning of their issuer (`issuers`), tokens in three parts, private keys.

A key that a terminal or a mail broke over lines is masked to its end.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Literal, NamedTuple

from agentsignals.model.lazy import deferred_pattern
from agentsignals.redaction.spans import BEGINS, Span, Stretches, has_mask, places

# Keys by their beginnings, one row an issuer: data for `keys`, facts that issuers and scanners publish.
#
# To add one: a row. `tests/test_redaction_issuers.py` makes samples of each row and holds the list against the
# detectors of a published scanner.

WORD, DASHED, DOTTED = "[A-Za-z0-9]", r"[\w-]", r"[\w.-]"
PADDED = r"[\w+/=.-]"
HEX, UPPER, LOWER = "[0-9a-f]", "[0-9A-Z]", "[0-9a-z]"
NUMBERED = r"(?=[\w-]{0,60}\d)"
_GITHUB = "https://docs.github.com/authentication/keeping-your-account-and-data-secure/about-authentication-to-github"
_GITLAB = "https://docs.gitlab.com/security/tokens/#token-prefixes"
_SLACK = "https://api.slack.com/concepts/token-types"
_AWS = "https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html#identifiers-unique-ids"
_PARTNERS = "https://docs.github.com/code-security/secret-scanning/introduction/supported-secret-scanning-patterns"
_GITLEAKS = "https://github.com/gitleaks/gitleaks/blob/master/config/gitleaks.toml"


class Issuer(NamedTuple):
    """Whose keys, how they begin, what follows, and who says so."""

    name: str
    prefixes: str
    """Beginnings, blanks between them. Those that end in `_`, `-` or `.` may stand beside letters of a body."""
    body: str
    """A class of characters."""
    least: int
    """So many of them make a key; more may follow."""
    source: str
    whole: int = 0
    """So many a key has: it is followed over line ends that far, whatever they look like."""
    drawn: bool = True
    """Only where the body looks drawn: the beginning may begin words, too."""
    ahead: str = ""
    """What must hold of what follows the beginning, as a look ahead."""


ISSUERS: tuple[Issuer, ...] = (
    Issuer("GitHub", "ghp_ gho_ ghu_ ghs_ ghr_", WORD, 20, _GITHUB, 36, drawn=False),
    Issuer("GitHub, fine", "github_pat_", r"\w", 20, _GITHUB, 82, drawn=False),
    Issuer("npm", "npm_", WORD, 30, "https://docs.npmjs.com/about-access-tokens", 36, drawn=False),
    Issuer("Hugging Face", "hf_ api_org_", WORD, 20, "https://huggingface.co/docs/hub/security-tokens", 34,
           drawn=False),
    Issuer("Stripe", "sk_live_ sk_test_ rk_live_ rk_test_ sk_prod_ rk_prod_ sk_org_live_ whsec_", WORD, 10,
           "https://docs.stripe.com/keys", drawn=False),
    Issuer("Anthropic", "sk-ant-", DASHED, 10, "https://docs.anthropic.com/en/api/overview", drawn=False),
    Issuer("OpenAI", "sk-proj- sk-svcacct- sk-admin- sk-or-", DASHED, 10, "https://platform.openai.com/docs",
           drawn=False),
    Issuer("OpenAI, DeepSeek", "sk-", DASHED, 16, "https://platform.openai.com/docs", drawn=False,
           ahead=NUMBERED),
    Issuer("Langfuse", "sk-lf- pk-lf-", DASHED, 24, "https://langfuse.com/docs", drawn=False),
    Issuer("Groq", "gsk_", DASHED, 20, "https://console.groq.com/docs", drawn=False),
    Issuer("Replicate", "r8_", DASHED, 20, "https://replicate.com/docs/reference/http", drawn=False),
    Issuer("DigitalOcean", "dop_v1_ doo_v1_ dor_v1_", DASHED, 20, "https://docs.digitalocean.com/reference/api",
           drawn=False),
    Issuer("Shopify", "shpat_ shpca_ shppa_ shpss_ shptka_", DASHED, 20, "https://shopify.dev/docs/api", drawn=False),
    Issuer("Supabase", "sbp_ sb_secret_", DASHED, 16, "https://supabase.com/docs/guides/api/api-keys", drawn=False),
    Issuer("Grafana", "glsa_ glc_", PADDED, 20, _GITLEAKS, drawn=False),
    Issuer("Docker", "dckr_pat_ dckr_oat_", DASHED, 20, "https://docs.docker.com/security/access-tokens/", drawn=False),
    Issuer("Linear", "lin_api_ lin_oauth_", DASHED, 16, "https://linear.app/developers", drawn=False),
    Issuer("Notion", "ntn_", DASHED, 16, "https://developers.notion.com/reference/authentication", drawn=False),
    Issuer("Notion, older", "secret_", WORD, 43, "https://developers.notion.com/reference/authentication"),
    Issuer("PlanetScale", "pscale_tkn_ pscale_pw_ pscale_oauth_ pscale_app_", DOTTED, 16,
           "https://planetscale.com/docs", drawn=False),
    Issuer("Sentry", "sntrys_ sntryu_ sntrya_", PADDED, 16, "https://docs.sentry.io/api/auth/", drawn=False),
    Issuer("Figma", "figd_ figo_ figor_ figu_", DASHED, 16, "https://www.figma.com/developers/api", drawn=False),
    Issuer("GitLab", "glpat- gldt- glrt- glcbt- glptt- glft- glimt- glagent- gloas- glsoat- glffct- glwt-", DOTTED, 16,
           _GITLAB, drawn=False),
    Issuer("Google, client", "GOCSPX-", DASHED, 16, "https://developers.google.com/identity/protocols/oauth2",
           drawn=False),
    Issuer("Google, access", "ya29.", DOTTED, 20, "https://developers.google.com/identity/protocols/oauth2",
           drawn=False),
    Issuer("Slack", "xoxb- xoxp- xoxa- xoxr- xoxs- xoxo- xoxe- xoxe. xoxc- xapp- xwfp-", r"[\w.-]", 10, _SLACK,
           drawn=False),
    Issuer("Slack, cookie", "xoxd-", r"[\w%+/=-]", 20, _SLACK, drawn=False),
    Issuer("Perplexity, xAI, Tavily", "pplx- xai- tvly-", DASHED, 24, _PARTNERS),
    Issuer("New Relic", "NRAK- NRJS- NRII- NRRA- NRIQ-", DASHED, 19, _GITLEAKS),
    Issuer("Postman", "PMAK-", DASHED, 24, _GITLEAKS),
    Issuer("PyPI", "pypi-AgE", DASHED, 12, "https://pypi.org/help/#apitoken", drawn=False),
    Issuer("PyPI, other", "pypi-", DASHED, 30, "https://pypi.org/help/#apitoken", drawn=False,
           ahead=rf"(?={DASHED}{{40}}|{DASHED}{{0,60}}\d)"),
    Issuer("Mailgun", "key- pubkey-", HEX, 32, _GITLEAKS),
    Issuer("age", "AGE-SECRET-KEY-1 AGE-SECRET-KEY-PQ-1", UPPER, 40, "https://age-encryption.org/v1", 58, drawn=False),
    Issuer("SendGrid", "SG.", DOTTED, 40, "https://www.twilio.com/docs/sendgrid", drawn=False),
    Issuer("Vault", "hvs. hvb. hvr.", DASHED, 20, "https://developer.hashicorp.com/vault/docs/concepts/tokens",
           drawn=False),
    Issuer("Tailscale", "tskey-auth- tskey-api- tskey-client- tskey-scim- tskey-webhook- tskey-", DASHED, 12,
           "https://tailscale.com/kb/1277/key-prefixes", drawn=False),
    Issuer("Heroku", "HRKU-", DASHED, 30, "https://devcenter.heroku.com/articles/platform-api-quickstart"),
    Issuer("LangSmith", "lsv2_pt_ lsv2_sk_ ls__", DASHED, 24, "https://docs.smith.langchain.com"),
    Issuer("RubyGems", "rubygems_", HEX, 32, "https://guides.rubygems.org/api-key-scopes/"),
    Issuer("PostHog", "phx_ phs_ pha_ phr_", DASHED, 30, "https://posthog.com/docs/api"),
    Issuer("Square", "sq0csp- sq0atp- sq0idp-", DASHED, 20, "https://developer.squareup.com/docs"),
    Issuer("Flutterwave", "FLWSECK_TEST- FLWSECK- FLWSECK_LIVE-", WORD, 12, _GITLEAKS),
    Issuer("Doppler", "dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit.", DOTTED, 24, "https://docs.doppler.com"),
    Issuer("Dynatrace", "dt0c01. dt0s01. dt0s16.", DOTTED, 40, "https://docs.dynatrace.com"),
    Issuer("Duffel", "duffel_test_ duffel_live_", DASHED, 30, _GITLEAKS),
    Issuer("Defined", "dnkey-", DASHED, 30, _GITLEAKS),
    Issuer("Fly", "fo1_ fm1r_ fm1a_ fm2_", PADDED, 30, "https://fly.io/docs/security/tokens/"),
    Issuer("Frame.io", "fio-u-", DASHED, 30, _GITLEAKS),
    Issuer("Harness", "pat. sat.", DOTTED, 50, _GITLEAKS),
    Issuer("HubSpot", "pat-na1- pat-na2- pat-eu1- pat-ap1-", r"[0-9A-Fa-f-]", 32, _PARTNERS),
    Issuer("Infracost", "ico-", WORD, 28, _GITLEAKS),
    Issuer("Intra42", "s-s4t2ud- s-s4t2af-", HEX, 32, _GITLEAKS),
    Issuer("Lob", "live_ test_ live_pub_ test_pub_", HEX, 31, _GITLEAKS),
    Issuer("Netlify", "nfp_ nfc_ nfo_ nfu_ nfb_", WORD, 30, _PARTNERS),
    Issuer("NVIDIA", "nvapi-", DASHED, 40, _PARTNERS),
    Issuer("Octopus", "API-", UPPER, 25, _GITLEAKS),
    Issuer("OpenShift", "sha256~", DASHED, 43, _GITLEAKS),
    Issuer("1Password", "ops_", WORD, 100, _GITLEAKS),
    Issuer("Plaid", "access-sandbox- access-development- access-production-", r"[0-9a-f-]", 36, _GITLEAKS),
    Issuer("Prefect", "pnu_ pnb_", WORD, 30, _GITLEAKS),
    Issuer("Pulumi", "pul-", HEX, 40, _GITLEAKS),
    Issuer("Readme", "rdme_", LOWER, 60, _GITLEAKS),
    Issuer("Scalingo", "tk-us-", DASHED, 40, _GITLEAKS),
    Issuer("Brevo", "xkeysib- xsmtpsib-", DASHED, 60, _GITLEAKS),
    Issuer("SettleMint", "sm_aat_ sm_pat_ sm_sat_", WORD, 16, _GITLEAKS),
    Issuer("Shippo", "shippo_live_ shippo_test_", HEX, 40, _GITLEAKS),
    Issuer("SonarQube", "squ_ sqp_ sqa_", WORD, 40, _GITLEAKS),
    Issuer("Sourcegraph", "sgp_ sgd_ slk_", r"\w", 40, _GITLEAKS),
    Issuer("Typeform", "tfp_", DOTTED, 40, _GITLEAKS),
    Issuer("Clojars", "CLOJARS_", WORD, 60, _GITLEAKS),
    Issuer("Adobe", "p8e-", WORD, 32, _GITLEAKS),
    Issuer("Cloudflare, origin", "v1.0-", r"[0-9a-f-]", 100, _GITLEAKS),
    Issuer("Contentful", "CFPAT-", DASHED, 40, _PARTNERS),
    Issuer("CircleCI", "CCIPAT_ CCIPRJ_", DASHED, 40, _PARTNERS),
    Issuer("Buildkite", "bkua_ bkaj_ bkpt_", WORD, 36, _PARTNERS),
    Issuer("Dropbox", "sl.", DASHED, 100, _GITLEAKS),
    Issuer("Render", "rnd_", WORD, 28, _PARTNERS),
    Issuer("Resend", "re_", r"\w", 24, _PARTNERS),
    Issuer("Vercel", "vcp_ vci_ vca_ vcr_ vck_", WORD, 24, _PARTNERS),
    Issuer("Pinecone", "pcsk_", r"\w", 40, _PARTNERS),
    Issuer("Neon", "napi_", WORD, 40, _PARTNERS),
    Issuer("Apify", "apify_api_", WORD, 30, _PARTNERS),
    Issuer("Cerebras", "csk-", WORD, 40, _PARTNERS),
    Issuer("Fireworks", "fw_", WORD, 22, _PARTNERS),
    Issuer("Together", "tgp_v1_", DASHED, 40, _PARTNERS),
    Issuer("ElevenLabs", "sk_", HEX, 40, _PARTNERS),
    Issuer("Jina, Firecrawl, E2B, RunPod", "jina_ fc- e2b_ rpa_", r"\w", 30, _PARTNERS),
    Issuer("Voyage", "pa-", DASHED, 40, _PARTNERS),
    Issuer("Weights & Biases", "wandb_v1_", r"\w", 40, _PARTNERS),
    Issuer("MongoDB Atlas", "mdb_sa_sk_", DASHED, 40, _PARTNERS),
    Issuer("Honeycomb", "hcaik_ hcxik_ hcaic_ hcalk_", WORD, 24, _PARTNERS),
    Issuer("Mercury", "mercury_production_ mercury_sandbox_", r"\w", 30, _PARTNERS),
    Issuer("Persona", "persona_production_ persona_sandbox_", DASHED, 30, _PARTNERS),
    Issuer("Snyk", "snyk_uat. snyk_sat.", DOTTED, 30, _PARTNERS),
    Issuer("Pinterest", "pina_", DASHED, 40, _PARTNERS),
    Issuer("Razorpay", "rzp_live_ rzp_test_", WORD, 14, _PARTNERS),
    Issuer("PayPal, Braintree", "access_token$production$ access_token$sandbox$", r"[\w$]", 32, _PARTNERS),
    Issuer("Amazon", "amzn.mws. amzn1.oa2-cs.v1.", r"[0-9a-f-]", 36, _PARTNERS),
    Issuer("Packagist", "packagist_ort_ packagist_out_ packagist_uut_ packagist_ack_acs_", WORD, 40, _PARTNERS),
    Issuer("WakaTime", "waka_", r"[0-9a-f-]", 36, _PARTNERS),
    Issuer("ReadMe, Unkey, Val Town, Socket", "unkey_ vtwn_ sktsec_", r"\w", 16, _PARTNERS),
    Issuer("Trigger.dev", "tr_dev_ tr_prod_ tr_stg_ tr_pat_", WORD, 20, _PARTNERS),
    Issuer("Paddle", "pdl_live_apikey_ pdl_sdbx_apikey_", r"\w", 40, _PARTNERS),
    Issuer("Portainer", "ptr_", PADDED, 40, _PARTNERS),
    Issuer("Inngest", "signkey-prod- signkey-test-", HEX, 32, _PARTNERS),
    Issuer("Mapbox", "sk. tk.", DOTTED, 80, _PARTNERS),
    Issuer("Cal.com", "cal_live_ cal_test_", HEX, 32, _PARTNERS),
    Issuer("Yandex", "t1.", DOTTED, 86, _GITLEAKS),
    Issuer("Zuplo, Thunderstore, Polar", "zpka_ tss_ polar_pat_ polar_oat_", r"\w", 32, _PARTNERS),
    Issuer("Databricks", "dapi dkea dose dosf", HEX, 32, "https://docs.databricks.com/dev-tools/auth"),
    Issuer("AWS, id", "AKIA ASIA ABIA ACCA", UPPER, 16, _AWS, 16, drawn=False),
    Issuer("AWS, older id", "A3T", UPPER, 17, _AWS, 17, drawn=False),
    Issuer("AWS, Bedrock", "ABSK", PADDED, 60, _AWS),
    Issuer("Google", "AIza", DASHED, 35, "https://docs.cloud.google.com/docs/authentication/api-keys", 35, drawn=False),
    Issuer("Google, refresh", "1//0", DASHED, 30, "https://developers.google.com/identity/protocols/oauth2"),
    Issuer("Twilio", "AC SK", HEX, 32, "https://www.twilio.com/docs/iam/api-keys"),
    Issuer("Atlassian", "ATATT3 ATCTT3 ATBB ATTA", r"[\w=-]", 20, "https://support.atlassian.com/atlassian-account"),
    Issuer("Square, Facebook, Meta", "EAAA EAAC EAAM EAAB EAAG EAAI EAAE EAAJ EAAD EAAF", WORD, 40, _GITLEAKS),
    Issuer("NuGet", "oy2", LOWER, 43, "https://learn.microsoft.com/nuget/nuget-org/publish-a-package"),
    Issuer("Alibaba", "LTAI", WORD, 16, _GITLEAKS),
    Issuer("Tencent, Volcengine", "AKID AKLT", WORD, 28, _PARTNERS),
    Issuer("Artifactory", "AKCp cmVmd", WORD, 55, _GITLEAKS),
    Issuer("EasyPost", "EZAK EZTK", WORD, 50, _GITLEAKS),
    Issuer("Yandex, AWS-like", "AQVN YCAJ YCM YCN YCO YCP", DASHED, 35, _GITLEAKS),
    Issuer("ClickHouse", "4b1d", WORD, 38, _GITLEAKS),
    Issuer("GitLab, runner", "GR1348941", DASHED, 20, _GITLAB, drawn=False),
    Issuer("Scaleway", "SCW", UPPER, 17, _PARTNERS),
    Issuer("Twitter", "AAAAAAAAAAAAAAAAAAAAA", r"[\w%+/=-]", 60, _GITLEAKS),
    Issuer("Airtable", "pat", DOTTED, 60, _PARTNERS, ahead=rf"(?={WORD}{{14}}\.)"),
    Issuer("crates.io", "cio", WORD, 32, "https://doc.rust-lang.org/cargo/reference/registry-authentication.html"),
)  # fmt: skip


# What a value looks like: a secret, or the code, the words and the identifiers that stand where secrets do.

LEAST_CHARS_VALUES = 6
"""A shorter value is masked by nobody's rule: it would be half of all assignments."""
Word = Literal["password", "secret", "token", "key"]
"""What a name says of its value, from much to little."""

_NO_VALUE = deferred_pattern(
    r"\[[A-Za-z_ ]+\]|<|\{\{|\$\{|\$\(|\$[A-Z_][A-Z0-9_]*\Z|\$[a-z_]+\Z|%\w+%|%[sd(]|\{[\w.]*\}|\*+\Z"
    r"|process\.env|os\.environ|import\.meta"
)
_PLACEHOLDER = deferred_pattern(
    r"x{4,}|X{4,}|\.\.\.|…|_{3,}|(?i:(?:your|my|the|an?|some|example)[\W_]|changeme|placeholder|redacted|dummy|undefined)"
)
"""How words begin that stand for a secret; drawn letters may, too."""
_REFERENCE = deferred_pattern(r"[A-Za-z_$][\w$]{0,60}(?:(?:\.|\?\.|::|->)[A-Za-z_$][\w$]{0,60}){0,12}[!?]?")
_SPEAKS_OF_IT = ("passw", "secret", "token", "key", "cred", "auth", "pwd")
_PASS = deferred_pattern(r"(?i)pass\b")
_PROSE = deferred_pattern(
    r"(?i)\b(?:must|least|require\w*|invalid|incorrect|enter|your|characters?|please|not|the|is|wrong)\b"
)
_TYPES = frozenset(("string", "String", "number", "boolean", "unknown", "object", "Object", "optional", "Optional",
                    "SecretStr", "Option", "bytes", "required", "nullable", "binary", "hidden", "default", "undefined",
                    "VARCHAR", "varchar", "return", "logger", "expect", "function", "static", "public", "private",
                    "readonly", "export", "import", "module", "values", "invalid", "missing", "expired"))  # fmt: skip
_UUID = deferred_pattern(r"(?i)[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_HASH = deferred_pattern(r"[0-9a-f]{7,64}")
_PATH = deferred_pattern(
    r"(?:~|\.{1,2})?/[\w.@-]+(?:/|\Z)|[A-Za-z]:[\\/]|[a-z]{2,12}://|[\w-]+(?:/[\w.-]+)*\.[a-z]{1,5}\Z"
)
_ROOT = deferred_pattern(
    r"(?i)~|\.{1,2}/|[a-z]:|[a-z]+://|/(?:users|home|root|usr|var|tmp|private|etc|opt|srv|mnt|run|dev|proc|sys|app|data|nix"
    r"|lib|bin|volumes|workspaces?|testbed|repo|code|work|src|build)(?:/|\Z)"
)
"""How paths begin of which no secret begins by chance."""
_KEY_CHARS = deferred_pattern(r"[\w+/=.~%:!@#^&*$-]++\Z")
_RANDOM = deferred_pattern(rf"(?=[^\d]*+\d)(?=[^A-Za-z]*+[A-Za-z]){_KEY_CHARS.pattern}")
_RUNS = deferred_pattern(r"[A-Z]?[a-z]+|[A-Z]+|\d+")
_WORDS = deferred_pattern(r"[A-Za-z\d]+")
_DIGIT, _LETTER, _BLANK = deferred_pattern(r"[0-9]"), deferred_pattern(r"[^\W\d_]"), deferred_pattern(r"\s")
_DRAWN_CHARS = 16
_DRAWN_RUN = 3
"""Letters and digits for one change of their kind within a word: of letters and digits drawn alike there are 1.9, of
small letters and digits 2.5, of words with numbers among them some ten."""
_PLAIN_PART = r"(?:[A-Za-z]*+\d{0,3}[a-z]?|\d++|\d{1,3}[A-Za-z]{0,8})(?=[_\-./:]|\Z)"
_PLAIN_PARTS = deferred_pattern(rf"{_PLAIN_PART}(?>(?:[_\-./:]{_PLAIN_PART})*)")


def is_secret(word: Word, name: str, value: str, *, quoted: bool = True) -> bool:
    """Whether a value of such a name is a secret. `quoted`: it stands in quotes, so it is no code."""
    if len(value) < LEAST_CHARS_VALUES or is_variable(value) or has_mask(value):
        return False
    if word == "key":
        return is_random(value, 12) and not is_known(value)
    if _BLANK.search(value):
        return quoted and word == "password" and not _PROSE.search(value) and not _has_its_words(value)
    called = not quoted and "(" in value and _REFERENCE.match(value.partition("(")[0])
    if called or (_is_path(value) and not is_random(value.rsplit("/", 1)[-1], 12)):
        return False
    if has_digit(value):
        return _is_numbered_secret(word, name, value, quoted=quoted)
    return _is_word_secret(word, name, value, quoted=quoted)


def _is_numbered_secret(word: Word, name: str, value: str, *, quoted: bool) -> bool:
    """Of values with a digit: most are secrets."""
    if word in ("password", "secret") and (quoted or value.isdigit()):
        return True
    if value.isdigit() or (not quoted and _REFERENCE.fullmatch(value) and _speaks_of_it(value)):
        return False
    return quoted or word in ("password", "secret") or name.isupper() or is_random(value, 8)


def _is_word_secret(word: Word, name: str, value: str, *, quoted: bool) -> bool:
    """Of values without a digit: most are code."""
    if word == "token":
        return quoted and len(value) >= 20 and value.isalnum() and not (value.islower() or value[1:].islower())
    if value in _TYPES or _speaks_of_it(value):
        return False
    if quoted or name.replace("-", "_").isupper():
        return "." not in value or not _REFERENCE.fullmatch(value)
    return value.isalpha() and value.islower() and word == "password"


def is_variable(value: str) -> bool:
    """Whether it stands for a secret without being one: a variable, a placeholder, what was masked before."""
    if _PLACEHOLDER.match(value):
        return not is_drawn(value)
    return bool(_NO_VALUE.match(value)) or "${" in value[:200]


def in_header(value: str) -> bool:
    """Whether what a header carries is a secret, not a variable or a word."""
    return not is_variable(value) and has_digit(value) and "(" not in value


def is_random(value: str, least: int) -> bool:
    """Whether a value looks drawn: letters and digits mixed as no word, version or list of words mixes them."""
    if len(value) < least or not _RANDOM.match(value):
        return False
    return not _is_plain(value) or is_drawn(value)


def _is_plain(value: str) -> bool:
    """Whether it is made of words, numbers, and words with a number."""
    return _PLAIN_PARTS.fullmatch(value) is not None


def is_mixed(value: str) -> bool:
    """Whether letters and digits are in it."""
    return has_digit(value) and _LETTER.search(value) is not None


def has_digit(value: str) -> bool:
    """Whether a digit of any script is in it."""
    return _DIGIT.search(value) is not None or (not value.isascii() and any(map(str.isdigit, value)))


def is_known(value: str) -> bool:
    """Whether it is an identifier of a kind that everybody may know: a UUID, a hash, a path."""
    return bool(_UUID.fullmatch(value) or _HASH.fullmatch(value)) or _is_path(value)


def _speaks_of_it(value: str) -> bool:
    """Whether words in it do; of drawn letters three are one by chance."""
    return _has_its_words(value) and not is_drawn(value)


def _has_its_words(value: str) -> bool:
    low = value.lower()
    return any(word in low for word in _SPEAKS_OF_IT) or ("pass" in low and _PASS.search(value) is not None)


def _is_path(value: str) -> bool:
    """Whether it is a path, and no secret that has the sign between folders among its letters, first or later."""
    if _PATH.match(value) is None:
        return False
    if _ROOT.match(value):
        return True
    parts = (p for p in value.split("/") if not (_is_plain(p) or _UUID.fullmatch(p) or _HASH.fullmatch(p)))
    return not is_random("".join(parts), 20)


def is_drawn(value: str) -> bool:
    """Whether letters and digits change in it so often as they do in no words."""
    if len(value) < _DRAWN_CHARS or not _KEY_CHARS.match(value):
        return False
    runs, words = _RUNS.findall(value), _WORDS.findall(value)
    return sum(map(len, words)) < _DRAWN_RUN * (len(runs) - len(words) + 1)


_LITERALS = r"\\{0,2}[\"'][ \t]{0,3}(?:\+[ \t]{0,3}(?:\r?\n)?|\r?\n|\\{1,2}n)[ \t]{0,40}\\{0,2}[\"']"
"""Between two literals of a program that are one: a plus, or the line's end."""
BREAK = (
    r"(?>(?:[\\=]?(?:\r?\n|\r)|[ \t]{0,40}[|│]\r?\n|(?:\\{1,2}r)?\\{1,2}n)[ \t]{0,40}"
    r"(?:\d{1,6}[→\t])?(?:[+>|│#*-]|//)?[ \t]{0,40}"
    rf"|{_LITERALS})"
)
"""A line's end, written or escaped, also as mails (quoted-printable) write it, and what stands before the next line of
a diff, a quote, a numbered listing; or where a program joins two literals.

Atomic: a dash after it is read in one way only, or a text of dashes would be read in endlessly many.
"""
_RUNS_ON = r"(?=[\w.+/=-]{0,200}?(?:\d|[a-z][A-Z]|[A-Z]{2}[a-z]))"
"""What a key's next line looks like, and a word's does not."""
_BROKEN = deferred_pattern(BREAK)
_IN_BREAKS = deferred_pattern(r"[\\\r\n\"']")


def _exactly(body: str, n: int) -> str:
    """A body of that length, on however many lines; longer ones, as issuers lengthen theirs."""
    return rf"(?:(?:{BREAK})?{body}){{{n}}}{body}{{0,400}}"


def _at_least(body: str, n: int) -> str:
    """A body of that length or longer; its next lines where they look like one."""
    more = rf"{BREAK}{_RUNS_ON}{body}{{8,400}}(?![\w:(])"
    return rf"(?:{body}{{{n},4000}}|{body}{{0,{n}}}(?={BREAK}))(?:{more}){{0,60}}"


class _Shape(NamedTuple):
    """What follows a beginning."""

    body: re.Pattern[str]
    drawn: int
    """So many of it must look drawn; 0 where any will do."""
    mixed: bool
    """Whether letters and digits must be in it."""


def _beginnings() -> dict[str, tuple[Issuer, bool]]:
    """Each beginning as its issuer writes it, and in small letters and in capitals, where that is another."""
    by_prefix: dict[str, tuple[Issuer, bool]] = {}
    for folds in (False, True):
        for issuer in ISSUERS:
            for prefix in issuer.prefixes.split():
                for way in (prefix.lower(), prefix.upper()) if folds else (prefix,):
                    by_prefix.setdefault(way, (issuer, folds))
    return by_prefix


_BEGINNINGS = _beginnings()


@cache
def _shape(prefix: str) -> _Shape:
    """What follows this beginning. In letters of another case than its issuer's, only what looks drawn is a key, or
    mixed where no sign between words can stand in it."""
    issuer, folds = _BEGINNINGS[prefix]
    more = _at_least(issuer.body, issuer.least)
    if folds or issuer.body == HEX:
        more = f"{issuer.body}{{{issuer.least},4000}}"
    elif issuer.whole:
        more = f"{_exactly(issuer.body, issuer.whole)}|{issuer.body}{{{issuer.least},255}}"
    ends = "(?![0-9A-Za-z])" if issuer.body == HEX else "(?![a-z])" if issuer.body == UPPER and not folds else ""
    pattern = re.compile(f"{issuer.ahead}(?:{more}){ends}", re.I if folds or issuer.body == HEX else re.NOFLAG)
    mixed = folds and not issuer.drawn and issuer.body in (WORD, UPPER)
    return _Shape(pattern, 0 if mixed or not (issuer.drawn or folds) else min(issuer.least, 16), mixed)


_GLUED_CHARS = 16
_HEAD_CHARS = 128
"""In what was looked at as a whole and is no key, so much tells whether another begins: of 64 drawn letters and digits
one has no digit in 100,000 times. A text of beginnings would be looked at to its end from each."""
_GLUED = frozenset(
    prefix
    for prefix, (issuer, folds) in _BEGINNINGS.items()
    if len(prefix) >= 4 and not folds and not issuer.drawn and (prefix[-1] in "_-." or issuer.body == UPPER)
)
"""Beginnings that no word ends in by chance: a key is one behind other letters, too, as in names of files."""
_ENDS = "_-."
"""A beginning is looked for by its last character, which is rare in texts: its first ones are not."""
_ENDED = sorted((p for p in _BEGINNINGS if p[-1] in _ENDS), key=lambda p: (-len(p), p))
_LENGTHS = sorted({len(p) for p in _ENDED}, reverse=True)
_FOLLOWS = r"(?=[\w%+/=.-]{10}|[\w%+/=.-]{0,9}(?:[\\\r\n\"']|[ \t]{0,40}[|│]))"


def _ended_in(last: str) -> re.Pattern[str]:
    by_length = ("|".join(re.escape(p) for p in _ENDED if p[-1] == last and len(p) == n) for n in _LENGTHS)
    return re.compile(re.escape(last) + _FOLLOWS + "(?:" + "|".join(f"(?<={ways})" for ways in by_length if ways) + ")")


@cache
def _ended() -> tuple[re.Pattern[str], ...]:
    return tuple(_ended_in(last) for last in _ENDS)


_START_CHARS = 2


def _by_start() -> dict[str, tuple[str, ...]]:
    """The beginnings that end in no such sign, the longest first, by their first two characters."""
    by_start: dict[str, tuple[str, ...]] = {}
    for prefix in sorted((p for p in _BEGINNINGS if p[-1] not in _ENDS), key=lambda p: (-len(p), p)):
        by_start[prefix[:_START_CHARS]] = (*by_start.get(prefix[:_START_CHARS], ()), prefix)
    return by_start


_BY_START = _by_start()
_START = "|".join(
    f"{first}[{''.join(re.escape(s[1]) for s in _BY_START if s[0] == first)}]"
    for first in sorted({s[0] for s in _BY_START})
)
_STARTS = deferred_pattern(rf"(?<![A-Za-z0-9])(?:{_START}|[nrt](?<=\\.)(?:{_START}))")
"""Where a word begins as a key may; an escaped line end or tab may stand before it."""
LEAST_CHARS = 12
"""A shorter text is no key."""
RUNS = Stretches(string.ascii_letters + string.digits + "_+/=~$%.-", 20)
"""What is long enough for a key, and for a secret in base64."""

_PICTURE_CHARS = 400
"""A longer run is base64 of a picture or the like, in which every beginning comes by chance: its own is looked at."""
_BROKEN_TOO = tuple(map(re.compile, ("I(?:A(?<=A[KSB]IA)|za(?<=AIza))", "CCA(?<=ACCA)", "E(?<=pypi-AgE)")))
"""Beginnings that are looked for in broken keys, too, by a letter of theirs that is rare in texts."""
_BARE: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("eyJ", deferred_pattern(rf"(?:{DASHED}|{BREAK}){{8,8000}}\.(?:[\w.-]|{BREAK}(?=[\w-]{{1,200}}\.)){{4,8000}}"
                       rf"(?:{BREAK}{_RUNS_ON}[\w.-]{{8,400}}(?![\w:(])){{0,60}}")),
    ("hooks.slack.com/", deferred_pattern("(?i:services|workflows|triggers)/" + _at_least("[A-Za-z0-9_/+-]", 16))),
    ("/api/webhooks/", deferred_pattern(r"\d{10,24}/" + _at_least(DASHED, 20))),
    ("sig=", deferred_pattern(r"[A-Za-z0-9%+/=_-]{20,200}")),
)  # fmt: skip
"""A needle, and what follows it: one in small letters stands in any."""
_IN_RUN = deferred_pattern(
    r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))(?:[A-Za-z0-9]{14}\.atlasv1\.[\w=-]{60,70}"
    r"|[0-9a-f]{32}-us\d{1,2}(?![0-9A-Za-z])"
    r"|[A-Za-z0-9_~.-]{3}\dQ~[A-Za-z0-9_~.-]{31,34}"
    r"|eyj[\w-]{16,8000}\.[\w-]{16,8000}\.[\w-]{16,8000}"
    r"|A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}(?![A-Z0-9])"
    r"|\d/\d{13,20}(?:/\d{13,20})?:[0-9a-f]{32}"
    r")",
    re.I,
)
"""Keys that a sign in their middle gives away: Terraform Cloud, Mailchimp, Azure, web tokens in small letters,
1Password, Asana."""
_SIGNS = ("atlasv1.", "-us", "q~", "eyj", "a3-")
_RUN_WORD = deferred_pattern(r"[\w-]*")

_BOT = deferred_pattern(_exactly(DASHED, 35))
_BOT_ID = deferred_pattern(r"(?<!\d)\d{6,12}\Z")
_DISCORD = deferred_pattern(r"\.[\w-]{6}\.[\w-]{27,80}(?![\w-])")
_DISCORD_ID = deferred_pattern(rf"{BEGINS}[MNO][\w-]{{22,27}}\Z", re.I)

_PEM_NAMES = ("PRIVATE KEY", "private key")
_PEM_HEAD = deferred_pattern(r"(?i:-----BEGIN [A-Z0-9 ]{0,40})\Z")
_PEM_REST = deferred_pattern(
    r"(?i: BLOCK)?-----(?![\"'`]\s*[,)\]])"
    r"(?:(?:(?!-----).){0,20000}?-?-----(?i:END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?)-----"
    r"|[A-Za-z0-9+/=\s\\\"',:>|*#→-]{0,20000})",
    re.S,
)
_PEM_END = deferred_pattern(r"-?-----(?i:END [A-Z0-9 ]{0,40})\Z")
_PEM_LINES = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=\\\"'>|# \t\r\n"
_PEM_LINE = deferred_pattern(r"[A-Za-z0-9+/=]{16}")
_MOST_KEY_CHARS = 8_000


def spans(text: str) -> Iterator[Span]:
    """Every key and private key that its shape gives away."""
    yield from _prefixed(text)
    yield from _broken(text)
    yield from _private_keys(text)


def _begins_word(text: str, at: int) -> bool:
    """Whether no word runs into this place; an escaped line end or tab before it is none."""
    before = text[at - 1] if at else " "
    if not (before.isalnum() and before.isascii()):
        return True
    return before in "nrt" and at > 1 and text[at - 2] == "\\"


def _body(text: str, at: int, shape: _Shape, begins: bool, refused: int) -> tuple[int, bool]:
    """Where what follows a beginning ends, and whether it is a key. `refused`: so far the text was looked at and is
    none."""
    if at < refused and not _is_key(shape, shape.body.match(text, at, at + _HEAD_CHARS), begins):
        return at, False
    body = shape.body.match(text, at)
    return (body.end(), _is_key(shape, body, begins)) if body else (at, False)


def _is_key(shape: _Shape, match: re.Match[str] | None, begins: bool) -> bool:
    """Whether what follows a beginning is a key: drawn, where the beginning may be a word's, or `begins` no word."""
    if match is None or not (begins or is_random(match[0], _GLUED_CHARS)):
        return False
    if shape.mixed:
        return is_mixed(match[0])
    if not shape.drawn or not is_mixed(match[0]):
        return not shape.drawn
    body = _BROKEN.sub("", match[0]) if _IN_BREAKS.search(match[0]) else match[0]
    return is_random(body, shape.drawn)


def _prefixed(text: str) -> Iterator[Span]:
    for pattern in _ended():
        done = refused = 0
        for hit in pattern.finditer(text):
            end = hit.end()
            if end < done:
                continue
            for length in _LENGTHS:
                prefix = text[max(0, end - length) : end]
                if (
                    end >= length
                    and prefix in _BEGINNINGS
                    and ((begins := _begins_word(text, end - length)) or prefix in _GLUED)
                ):
                    body_end, is_key = _body(text, end, _shape(prefix), begins, refused)
                    if is_key:
                        done = body_end
                        yield Span(end - length, done, "key")
                        break
                    refused = max(refused, body_end)


def _broken(text: str) -> Iterator[Span]:
    """Short keys, whole or over line ends, so that they are in no long run."""
    for pattern in _BROKEN_TOO:
        done = 0
        for hit in pattern.finditer(text):
            end = hit.end()
            at = end - (len("pypi-AgE") if hit[0] == "E" else len("AKIA"))
            glued = not _begins_word(text, at)
            if at < done or (glued and text[at:end] not in _GLUED):
                continue
            body = _shape(text[at:end]).body.match(text, end)
            done = body.end() if body else _run_end(text, at)
            if body and not (glued and not is_mixed(body[0])):
                yield Span(at, done, "key")


def in_runs(text: str, low: str, runs: Iterable[tuple[int, int]]) -> Iterator[Span]:
    """The keys in long runs of a text's letters, digits and signs, by a beginning that ends in a letter, in any case,
    or by a sign in their middle. `low`: the text in small letters.
    """
    bare = [way for way in _BARE if way[0] in (low if way[0].islower() else text)]
    signs = any(sign in low for sign in _SIGNS)
    done = refused = 0
    for start, whole_end in runs:
        end = min(whole_end, start + _PICTURE_CHARS)
        for piece in _STARTS.finditer(text, start, end):
            at = piece.end() - _START_CHARS
            if at < done:
                continue
            for prefix in _BY_START[piece[0][-_START_CHARS:]]:
                if text.startswith(prefix, at):
                    body_end, is_key = _body(text, at + len(prefix), _shape(prefix), True, refused)
                    if is_key:
                        done = body_end
                        yield Span(at, done, "key")
                        break
                    refused = max(refused, body_end)
        for needle, pattern in bare:
            yield from _after(text, start, (low if needle.islower() else text)[start:end], needle, pattern)
        yield from _bots(text, start, end)
        if signs or text[end : end + 1] == ":":
            for hit in _IN_RUN.finditer(text, start, min(len(text), end + 40)):
                yield Span(*hit.span(), "key")


def _bots(text: str, start: int, end: int) -> Iterator[Span]:
    """Keys of Telegram's and Discord's bots, which begin with a number, in any case."""
    begins = text[max(0, start - 1) : start + 2].lower() == ":aa"
    number = _BOT_ID.search(text, max(0, start - 13), start - 1) if begins else None
    if number and (token := _BOT.match(text, start)):
        yield Span(number.start(), token.end(), "key")
    for hit in _DISCORD.finditer(text, start, end):
        if number := _DISCORD_ID.search(text, max(0, hit.start() - 28), hit.start()):
            yield Span(number.start(), hit.end(), "key")


def _after(text: str, start: int, among: str, needle: str, pattern: re.Pattern[str]) -> Iterator[Span]:
    """What follows a needle in a run that begins at `start`. `among`: the run; in small letters, where any will do."""
    done = start
    for within in places(among, needle):
        at = start + within
        if at >= done and (_begins_word(text, at) or needle[-1] == "/"):
            body = pattern.match(text, at + len(needle))
            done = body.end() if body else _run_end(text, at)
            if body:
                yield Span(at, done, "key")


def _run_end(text: str, at: int) -> int:
    """Where the word ends that begins here: what was not found in it is not looked for again in its parts."""
    run = _RUN_WORD.match(text, at)
    return run.end() if run else at


def _private_keys(text: str) -> Iterator[Span]:
    for name in _PEM_NAMES:
        if name in text:
            yield from _named_private_keys(text, name)


def _named_private_keys(text: str, name: str) -> Iterator[Span]:
    done = 0
    for at in places(text, name):
        head = _PEM_HEAD.search(text, max(done, at - 60), at)
        rest = head and _PEM_REST.match(text, at + len(name))
        if head and rest:
            done = rest.end()
            yield Span(head.start(), done, "private key")
        elif (start := _tail_of_key(text, done, at)) is not None:
            yield Span(start, at, "private key")


def _tail_of_key(text: str, done: int, at: int) -> int | None:
    """Where the lines begin that are left of a private key whose beginning was cut off; None where there are none."""
    end = _PEM_END.search(text, max(done, at - 60), at)
    if end is None:
        return None
    first = max(done, at - _MOST_KEY_CHARS)
    lines = len(text[first : end.start()].rstrip(_PEM_LINES))
    line = _PEM_LINE.search(text, first + lines, end.start())
    return line.start() if line else None
