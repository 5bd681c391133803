import { define } from './definition.js';
import { onOff, path, text } from './kinds.js';
import { isKeySetUrl } from './text-forms.js';

/** Who may do what (contract 9). */
export const SECURITY_DEFINITIONS = {
  tlsCertFile: define({
    group: 'Security',
    kind: path('FILE'),
    default: null,
    doc: 'PEM file with the certificate, and those that vouch for it: serve TLS only. Read again on SIGHUP.',
  }),
  tlsKeyFile: define({
    group: 'Security',
    kind: path('FILE'),
    default: null,
    doc: 'PEM file with the key of `tlsCertFile`, without a passphrase.',
  }),
  jwtKeysFile: define({
    group: 'Security',
    kind: path('FILE'),
    default: null,
    doc: 'JSON Web Key Set with the keys that tokens are checked against, each with its `alg`. Read again on SIGHUP.',
  }),
  jwksUrl: define({
    group: 'Security',
    kind: text({
      placeholder: 'URL',
      expected: 'an https URL, or an http one of a loopback address, without a user',
      isValid: (url) => url === '' || isKeySetUrl(url),
    }),
    default: '',
    doc: 'Where more such keys are fetched from, at start, every 5 minutes, and when a token names a new one.',
  }),
  jwtIssuer: define({
    group: 'Security',
    kind: text({ placeholder: 'TEXT', expected: 'a text', isValid: isClaimText }),
    default: '',
    doc: 'The `iss` that tokens must have. Empty takes any.',
  }),
  jwtAudience: define({
    group: 'Security',
    kind: text({ placeholder: 'TEXT', expected: 'a text', isValid: isClaimText }),
    default: '',
    doc: 'The `aud` that tokens must have. Empty takes any; set it where the issuer makes tokens for others too.',
  }),
  apiKeysFile: define({
    group: 'Security',
    kind: path('FILE'),
    default: null,
    doc: 'JSON file with the hashes of static API keys, and what each may do. Read again on SIGHUP.',
  }),
  tokenInQuery: define({
    group: 'Security',
    kind: onOff(),
    default: false,
    doc: 'Take tokens from `?access_token=` too, for browsers, which cannot set a header. URLs end up in logs.',
  }),
};

function isClaimText(value: string): boolean {
  return value.length <= 1000;
}
