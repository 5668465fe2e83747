const STORED_AS = 'towline-token';
const CHANNEL = 'towline-token';
const OTHER_TAB_TIMEOUT_MS = 250;

/**
 * Takes the token out of the address, `#token=TOKEN` or `#token=TOKEN&/run/ID`, so that it is
 * neither in the history of the browser nor in an address that somebody copies.
 */
export function takeFromAddress(hash: string): { token: string; rest: string } | undefined {
  const found = /^#token=([^&/]+)(?:&(.*))?$/.exec(hash);
  if (!found) return undefined;
  return { token: decodeURIComponent(found[1] ?? ''), rest: found[2] ? `#${found[2]}` : '#/runs' };
}

/**
 * The token of this tab. A tab that was opened from another one has none in its address: it asks
 * the other tabs of this origin.
 */
export async function findToken(): Promise<string | undefined> {
  const taken = takeFromAddress(location.hash);
  if (taken) {
    sessionStorage.setItem(STORED_AS, taken.token);
    history.replaceState(null, '', taken.rest);
  }
  const token = sessionStorage.getItem(STORED_AS) ?? (await askOtherTabs());
  if (token) {
    sessionStorage.setItem(STORED_AS, token);
    answerOtherTabs(token);
  }
  return token;
}

export function forgetToken(): void {
  sessionStorage.removeItem(STORED_AS);
}

function askOtherTabs(): Promise<string | undefined> {
  const channel = new BroadcastChannel(CHANNEL);
  return new Promise<string | undefined>((resolve) => {
    const timer = setTimeout(() => resolve(undefined), OTHER_TAB_TIMEOUT_MS);
    channel.onmessage = (event: MessageEvent<{ token?: string }>) => {
      if (!event.data.token) return;
      clearTimeout(timer);
      resolve(event.data.token);
    };
    channel.postMessage({ wanted: true });
  }).finally(() => channel.close());
}

function answerOtherTabs(token: string): void {
  const channel = new BroadcastChannel(CHANNEL);
  channel.onmessage = (event: MessageEvent<{ wanted?: boolean }>) => {
    if (event.data.wanted) channel.postMessage({ token });
  };
}
