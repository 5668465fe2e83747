import { SvelteSet } from 'svelte/reactivity';
import { formatAddress } from '../route/address';

/** The runs and sweeps that are selected, by id. They stay selected from page to page. */
class Selection {
  ids = new SvelteSet<string>();

  get size(): number {
    return this.ids.size;
  }

  toggle(id: string): void {
    if (!this.ids.delete(id)) this.ids.add(id);
  }

  set(ids: Iterable<string>, isSelected: boolean): void {
    for (const id of ids) {
      if (isSelected) this.ids.add(id);
      else this.ids.delete(id);
    }
  }

  clear(): void {
    this.ids.clear();
  }

  /** The page that compares what is selected. */
  address(): string {
    return formatAddress(['compare'], new URLSearchParams({ runs: [...this.ids].join(',') }));
  }
}

export const selection = new Selection();
