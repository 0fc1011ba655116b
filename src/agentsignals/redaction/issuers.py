"""Keys by their beginnings, one row an issuer: data for `keys`, facts that issuers and scanners publish.

To add one: a row. `tests/test_redaction_issuers.py` makes samples of each row and holds the list against the detectors
of a published scanner.
"""

from __future__ import annotations

from typing import NamedTuple

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
