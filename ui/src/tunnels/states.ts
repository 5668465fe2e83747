import type { Tunnel } from '../api/types';
import type { IconName } from '../parts/icons';

export type TunnelLook = { word: string; icon: IconName; says: string };

const LOOKS: Record<string, TunnelLook> = {
  open: { word: 'open', icon: 'plug', says: 'the far end answered' },
  connecting: { word: 'connecting', icon: 'repeat', says: 'it is on its way' },
  failing: { word: 'failing', icon: 'warning', says: 'it is tried again until it is closed' },
  wrong: { word: 'wrong', icon: 'failed', says: 'its definition cannot be used' },
  closed: { word: 'closed', icon: 'unplugged', says: 'nothing listens' },
};

export function tunnelLook(state: string): TunnelLook {
  return LOOKS[state] ?? { word: state, icon: 'note', says: '' };
}

/** Whether something of it runs, so that it has to be closed before it can be removed. */
export function isUp({ state }: Pick<Tunnel, 'state'>): boolean {
  return state !== 'closed' && state !== 'wrong';
}

/** Lines for an ssh configuration, on a machine where the names of tunnels are not known. */
export function sshEntry({ alias, port, to }: Pick<Tunnel, 'alias' | 'port' | 'to'>): string | null {
  if (alias === null || port === null) return null;
  // The key is kept under the name of the host, so that another host behind the port is noticed.
  const host = to.replace(/:\d+$/, '');
  return `Host ${alias}\n    HostName 127.0.0.1\n    Port ${port}\n    HostKeyAlias ${host}\n`;
}

const SOON_MS = 1000;
const LATER_MS = 15_000;

/** When to look again: at once while something changes by itself. */
export function pollPause(tunnels: Pick<Tunnel, 'state'>[]): number {
  return tunnels.some(({ state }) => state === 'connecting' || state === 'closing') ? SOON_MS : LATER_MS;
}
