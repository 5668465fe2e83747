import { store, stored } from '../shell/stored';

const MOST = 20;

/** The runs and sweeps that this browser shows above all others. */
class Pins {
  ids = $state.raw<string[]>(stored<string[]>('pins', []).filter((id) => typeof id === 'string'));

  has(id: string): boolean {
    return this.ids.includes(id);
  }

  toggle(id: string): void {
    const others = this.ids.filter((other) => other !== id);
    this.ids = others.length < this.ids.length ? others : [id, ...others].slice(0, MOST);
    store('pins', this.ids);
  }
}

export const pins = new Pins();
