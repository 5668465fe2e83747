/** What a tier means, whether a run is evicted from it, and where its nodes are. */
export type Tier = {
  name: string;
  words: string;
  means: string;
  evicted: string;
  /** On this machine, where a tier is a place in the queue. */
  evictedHere: string;
  /** What Azure promises. */
  onAzure: string;
  place: string;
};

export const TIERS: Tier[] = [
  {
    name: 'premium',
    words: 'Premium',
    means: 'Goes before the others.',
    onAzure: 'Goes before the others; 90 % of the time is promised.',
    evicted: 'Almost never evicted.',
    evictedHere: 'Never evicted.',
    place: 'Nodes close together where the cluster can.',
  },
  {
    name: 'standard',
    words: 'Standard',
    means: 'The default, in between.',
    onAzure: 'The default, in between; 70 % of the time is promised.',
    evicted: 'Seldom evicted; it then starts again.',
    evictedHere: 'Not evicted on this machine.',
    place: 'Nodes close together if there is room.',
  },
  {
    name: 'basic',
    words: 'Basic',
    means: 'Takes what the others leave.',
    onAzure: 'Takes what the others leave; nothing is promised.',
    evicted: 'Often evicted: SIGTERM, ten seconds, and into the queue again.',
    evictedHere: 'Evicted: SIGTERM, ten seconds, and into the queue again.',
    place: 'Nodes wherever they are free.',
  },
];
