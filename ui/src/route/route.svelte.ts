import { formatAddress, parseAddress, type Address } from './address';

/** Where the reader is. Components read `route.path` and `route.query`. */
class Route {
  #current = $state.raw<Address>(parseAddress(''));

  get path(): string[] {
    return this.#current.path;
  }

  get query(): URLSearchParams {
    return this.#current.query;
  }

  start(): void {
    const read = () => (this.#current = parseAddress(location.hash));
    addEventListener('hashchange', read);
    read();
  }

  go(hash: string): void {
    location.hash = hash;
  }

  /** Changes what stands in the address without a step that the back button would take. */
  replace(path: string[], query?: URLSearchParams): void {
    const hash = formatAddress(path, query);
    if (hash === location.hash) return;
    history.replaceState(history.state, '', hash);
    this.#current = parseAddress(hash);
  }
}

export const route = new Route();
