/**
 * Which web pages may talk to a listener without auth (DESIGN 7). A request is judged only if a browser
 * sent it; curl, servers and our own clients are not judged. One that is marked with `Origin` or
 * `Sec-Fetch-Site` must come from an allowed origin *and* name an allowed host: the first keeps foreign
 * pages out, the second keeps them out when their name is made to resolve to this machine (DNS rebinding).
 * Such a page's reads of its "own" origin carry neither mark over plain HTTP, so they are known by what
 * else browsers send, and judged by their host alone. The origin is never compared with `Host`, which such
 * a page controls.
 */

export interface OriginPolicy {
  /** `*` in the list: pages of every origin. */
  readonly isEveryOriginAllowed: boolean;
  /** As in an `Origin` header, lower case. */
  readonly origins: ReadonlySet<string>;
  /** Flag that adds to them, for refusals. */
  readonly originFlag: string;
  /** `*` in the list: every host. */
  readonly isEveryHostAllowed: boolean;
  /** Host names without port, lower case. */
  readonly hosts: ReadonlySet<string>;
}

export interface OriginSettings {
  /** Flag that `corsOrigins` comes from: each listener has one. */
  readonly originFlag: "--cors-origin" | "--admin-cors-origin";
  readonly corsOrigins: readonly string[];
  /** `--allowed-host`; a port in one is ignored. */
  readonly allowedHosts: readonly string[];
  /** Our own listeners as clients reach them: their origins and hosts are allowed. */
  readonly advertisedUrls: readonly string[];
}

/** What a browser said of a request; undefined where the header is absent. */
export interface OriginClaim {
  readonly origin: string | undefined;
  readonly fetchSite: string | undefined;
  /** A browser sent it, though without these marks. */
  readonly isUnmarkedBrowser: boolean;
  /** Authority that the request names, with its port; null where it names none. */
  readonly authority: string | null;
}

export type OriginVerdict =
  /** `allowOrigin`: value of `Access-Control-Allow-Origin`; null where the request named no origin. */
  { readonly isAllowed: true; readonly allowOrigin: string | null } | { readonly isAllowed: false; readonly reason: string };

export const NOT_JUDGED: OriginVerdict = { isAllowed: true, allowOrigin: null };

const FOREIGN_HOST: OriginVerdict = { isAllowed: false, reason: "host is not allowed; name it with --allowed-host" };

export function makeOriginPolicy(settings: OriginSettings): OriginPolicy {
  const advertised = settings.advertisedUrls.map(parseUrl).filter((url) => url !== null);
  return {
    isEveryOriginAllowed: settings.corsOrigins.includes("*"),
    origins: new Set([...settings.corsOrigins.map(normalizeOrigin), ...advertised.map((url) => url.origin)]),
    isEveryHostAllowed: settings.allowedHosts.includes("*"),
    originFlag: settings.originFlag,
    hosts: new Set([...settings.allowedHosts.map(hostOf), ...advertised.map((url) => hostOf(url.host))]),
  };
}

export function judgeOrigin(policy: OriginPolicy, claim: OriginClaim): OriginVerdict {
  const { origin, fetchSite, isUnmarkedBrowser, authority } = claim;
  const isMarked = origin !== undefined || fetchSite !== undefined;
  if (!isMarked && (!isUnmarkedBrowser || isAddress(authority))) return NOT_JUDGED;
  if (!isHostAllowed(policy, authority)) return FOREIGN_HOST;
  if (!isMarked) return NOT_JUDGED;
  if (origin !== undefined) {
    if (policy.isEveryOriginAllowed) return { isAllowed: true, allowOrigin: "*" };
    if (isOriginAllowed(policy, origin)) return { isAllowed: true, allowOrigin: origin };
    return { isAllowed: false, reason: `origin is not allowed; name it with ${policy.originFlag}` };
  }
  // Without an origin: typed by a person, or a page of this very origin. All else is another site's.
  const isOwn = fetchSite === "same-origin" || fetchSite === "none" || policy.isEveryOriginAllowed;
  return isOwn ? NOT_JUDGED : { isAllowed: false, reason: "request comes from a page of another origin that does not name itself" };
}

function isOriginAllowed(policy: OriginPolicy, origin: string): boolean {
  if (policy.origins.has(origin.toLowerCase())) return true;
  const url = parseUrl(origin);
  if (url === null || (url.protocol !== "http:" && url.protocol !== "https:")) return false;
  return url.origin === origin.toLowerCase() && isLoopbackHost(hostOf(url.host));
}

function isHostAllowed(policy: OriginPolicy, authority: string | null): boolean {
  if (policy.isEveryHostAllowed) return true;
  if (authority === null) return false;
  const host = hostOf(authority);
  return isLoopbackHost(host) || policy.hosts.has(host);
}

/** An IP address, which unlike a name leads nowhere else. */
function isAddress(authority: string | null): boolean {
  return authority !== null && (authority.startsWith("[") || /^\d{1,3}(\.\d{1,3}){3}(:|$)/.test(authority));
}

/** `localhost`, names below it, 127.0.0.0/8 and ::1: no other machine's, whoever resolves them. */
export function isLoopbackHost(host: string): boolean {
  if (host === "localhost" || host.endsWith(".localhost") || host === "[::1]") return true;
  return /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(host);
}

/** The host of an authority: lower case, without port and final dot; brackets of IPv6 stay. */
function hostOf(authority: string): string {
  const lower = authority.toLowerCase();
  const end = lower.startsWith("[") ? lower.indexOf("]") + 1 : lower.indexOf(":");
  const host = end > 0 ? lower.slice(0, end) : lower;
  return host.endsWith(".") ? host.slice(0, -1) : host;
}

/** An operator may write a trailing slash or a default port. */
function normalizeOrigin(origin: string): string {
  const url = parseUrl(origin);
  return url === null || url.origin === "null" ? origin.toLowerCase() : url.origin;
}

function parseUrl(text: string): URL | null {
  return URL.canParse(text) ? new URL(text) : null;
}
