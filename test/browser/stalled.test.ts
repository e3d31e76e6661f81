/** A node whose store takes no writes: every page says so, and the overview why; then that it is over. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { FAKE_BUCKET, FakeS3 } from "../support/fake-s3.ts";
import { Dashboard } from "./dashboard.ts";
import { describeInBrowser } from "./describe-in-browser.ts";
import { append, createStream } from "./streams.ts";

const TEST_MS_MAX = 90_000;
const AWAY = { status: 503, body: "<Error><Code>SlowDown</Code><Message>away</Message></Error>" };

describeInBrowser("a node whose WAL is stalled", () => {
  let store: FakeS3;
  let dashboard: Dashboard;

  beforeAll(async () => {
    store = await FakeS3.start();
    // Who may not read the rules of a bucket is admitted.
    const denied = { status: 403, body: "<Error><Code>AccessDenied</Code><Message>no</Message></Error>" };
    store.plan(({ query }) => query.has("versioning") || query.has("lifecycle"), { kind: "answer", answer: denied }, 2);
    dashboard = await Dashboard.start({
      flags: ["--storage", `s3://${FAKE_BUCKET}?endpoint=${store.endpoint}&pathStyle=true`],
      environment: { AWS_ACCESS_KEY_ID: "fake", AWS_SECRET_ACCESS_KEY: "fake-secret", AWS_REGION: "us-east-1" },
    });
    await createStream(dashboard.picoUrl, "/s", { "content-type": "text/plain" });
  }, TEST_MS_MAX);

  afterAll(async () => {
    await dashboard[Symbol.asyncDispose]();
    await store.stop();
    expect(dashboard.sightings).toEqual({ foreignRequests: [], complaints: [] });
  }, TEST_MS_MAX);

  test(
    "pill and headline say that it takes no appends, though it is ready, until it does again",
    async () => {
      const overview = await dashboard.open("");
      const streams = await dashboard.open("#/streams");
      const pillOf = (words: string) =>
        Promise.all([overview, streams].map((page) => page.locator("#status-pill").getByText(words, { exact: true }).waitFor()));
      await pillOf("Ready");

      store.plan(
        ({ method, key }) => method === "PUT" && key.includes("/wal/"),
        { kind: "answer", answer: AWAY },
        Number.POSITIVE_INFINITY,
      );
      const waiting = fetch(`${dashboard.picoUrl}/s`, { method: "POST", body: "waits" });
      await pillOf("Stalled");
      await overview.getByText("This node reads, and takes no appends: its write-ahead log is stalled").waitFor();
      await overview.locator(".tile", { hasText: "Write-ahead log" }).getByText("stalled: appends are refused").waitFor();
      expect((await fetch(`${dashboard.adminUrl}/ready`)).status).toBe(200);

      store.forget();
      await pillOf("Ready");
      await overview.getByText("This node is ready").waitFor();
      await waiting;
      await append(dashboard.picoUrl, "/s", "taken");
    },
    TEST_MS_MAX,
  );
});
