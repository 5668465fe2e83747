import type { LoginCode } from '../api/types';

const METHODS: Record<string, string> = {
  device_code: 'by a code in a browser',
  certificate: 'by a certificate',
  azure_cli: 'by the login of the Azure CLI',
  managed_identity: 'as the identity of this machine',
  'service principal': 'as a service principal',
  workload_identity: 'by a federated token',
};

export function methodWords(method: string): string {
  return METHODS[method] ?? method.replaceAll('_', ' ');
}

/** Whether a part of the answer of `login` is the code that somebody has to enter. */
export function isLoginCode(part: unknown): part is LoginCode {
  if (typeof part !== 'object' || part === null) return false;
  const { code, address } = part as Partial<LoginCode>;
  return typeof code === 'string' && typeof address === 'string';
}

/**
 * The address of a sign-in page, if it may be a link: an ordinary one of the web and no script. A
 * service could send anything.
 */
export function signInLink(address: string): string | null {
  try {
    const url = new URL(address);
    return url.protocol === 'https:' || url.hostname === '127.0.0.1' ? url.href : null;
  } catch {
    return null;
  }
}
