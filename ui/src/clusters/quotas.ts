import type { Quota } from '../api/types';

export type QuotaLine = { tier: string; region: string | null; used: number; limit: number };
export type QuotaSeries = { series: string; lines: QuotaLine[] };

const TIERS = ['premium', 'standard', 'basic'];

function rank(tier: string): number {
  const at = TIERS.indexOf(tier.toLowerCase());
  return at < 0 ? TIERS.length : at;
}

/** Quotas by series, the strongest tier first. Regions are named only where there are several. */
export function quotaSeries(quotas: Quota[]): QuotaSeries[] {
  const bySeries = new Map<string, Quota[]>();
  for (const quota of quotas) bySeries.set(quota.series, [...(bySeries.get(quota.series) ?? []), quota]);
  return [...bySeries].map(([series, all]) => {
    const hasRegions = new Set(all.map(({ region }) => region)).size > 1;
    const lines = all
      .toSorted((one, other) => rank(one.tier) - rank(other.tier) || one.region.localeCompare(other.region))
      .map(({ tier, region, used, limit }) => ({ tier, region: hasRegions ? region : null, used, limit }));
    return { series, lines };
  });
}
