/** The client's cases in a web page, one by one as `run-browser.ts` asks for them. */
import { browserStage, type PageFunctions } from "./browser-stage.ts";
import { clientCases } from "./client-cases.ts";
import { ClientSuite } from "./client-suite.ts";

/** What the page offers to the program that drives the browser. */
export interface CasePage {
  caseNames(): readonly { readonly name: string; readonly notInBrowser: string | null }[];
  /** What the case threw, with its stack; null if it passed. */
  runCase(index: number): Promise<string | null>;
}

const page = globalThis as unknown as PageFunctions & CasePage;
const suite = ClientSuite.start(browserStage(page));

page.caseNames = () => clientCases.map(({ name, notInBrowser = null }) => ({ name, notInBrowser }));

page.runCase = async (index) => {
  const one = clientCases[index];
  if (one === undefined) return `there is no case ${index}`;
  try {
    await (await suite).run(one);
    return null;
  } catch (error) {
    return error instanceof Error ? (error.stack ?? error.message) : `threw ${String(error)}`;
  }
};
