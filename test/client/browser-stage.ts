/**
 * The stage of cases that run in a web page: servers and proxies belong to the program that drives the browser
 * (`run-browser.ts`), and are reached over functions that it put into the page.
 */
import type { CaseStage, Fault, FaultRule, ProxiedRequest, TestProxy, TestServer } from "./case-stage.ts";

/** A server as the program tells of it. */
export interface ServerNote {
  readonly id: number;
  readonly picoUrl: string;
  readonly durableStreamsUrl: string;
}

export interface ProxyNote {
  readonly id: number;
  readonly url: string;
}

/** A request as it travels to the page: its body as text of one byte a character. */
export interface RequestNote extends Omit<ProxiedRequest, "body"> {
  readonly body: string;
}

export type ServerAct = "restart" | "kill" | "revive" | "remove";

/** What the program put into the page. */
export interface PageFunctions {
  stageStartServer(flags: readonly string[]): Promise<ServerNote>;
  stageActOnServer(id: number, act: ServerAct): Promise<void>;
  stageStartProxy(target: string): Promise<ProxyNote>;
  stageCloseProxy(id: number): Promise<void>;
}

/** What the page offers to the program. */
export interface PageOffers {
  /** The fault that the rule of a proxy wants for a request. */
  stageJudge(proxyId: number, request: RequestNote, index: number): Fault;
}

export function browserStage(page: PageFunctions & Partial<PageOffers>): CaseStage {
  const proxies = new Map<number, RemoteProxy>();
  page.stageJudge = (proxyId, request, index) => {
    const proxy = proxies.get(proxyId);
    if (proxy === undefined) throw new Error(`a request to proxy ${proxyId}, which is closed`);
    return proxy.judge(request, index);
  };
  return {
    async startServer(flags) {
      const { id, picoUrl, durableStreamsUrl } = await page.stageStartServer(flags);
      const act = (name: ServerAct) => () => page.stageActOnServer(id, name);
      const server: TestServer = {
        picoUrl,
        durableStreamsUrl,
        restart: act("restart"),
        kill: act("kill"),
        revive: act("revive"),
        remove: act("remove"),
      };
      return server;
    },
    async startProxy(target, rule) {
      const { id, url } = await page.stageStartProxy(target);
      const close = async () => {
        await page.stageCloseProxy(id);
        proxies.delete(id);
      };
      const proxy = new RemoteProxy(url, rule, close);
      proxies.set(id, proxy);
      return proxy;
    },
  };
}

class RemoteProxy implements TestProxy {
  readonly url: string;
  readonly requests: ProxiedRequest[] = [];
  readonly close: () => Promise<void>;
  readonly #rule: FaultRule;

  constructor(url: string, rule: FaultRule, close: () => Promise<void>) {
    this.url = url;
    this.#rule = rule;
    this.close = close;
  }

  judge({ body, ...head }: RequestNote, index: number): Fault {
    const request = { ...head, body: Uint8Array.from(body, (character) => character.charCodeAt(0)) };
    this.requests.push(request);
    return this.#rule(request, index);
  }
}
