import { expect, test } from "bun:test";
import { adminRoutes } from "../../src/admin/admin-routes.ts";
import { documentRoute } from "../../src/admin/document-routes.ts";
import { openExchange } from "../../src/protocol/exchange.ts";
import { testAdminContext } from "../support/admin-listener.ts";

test("the description is made once, and anew when it names another Durable Streams listener", async () => {
  const routes = adminRoutes(testAdminContext());
  let made = 0;
  let url: string | null = null;
  const route = documentRoute(
    () => {
      made += 1;
      return routes;
    },
    () => url,
  );
  const ask = async () => (await route.handle(openExchange(new Request("http://127.0.0.1/openapi.json"), null), "")).text();
  const without = await ask();
  expect([await ask(), made]).toEqual([without, 1]);
  url = "http://127.0.0.1:4438";
  const beside = await ask();
  expect([await ask(), made]).toEqual([beside, 2]);
  expect([without.includes(url), beside.includes(url)]).toEqual([false, true]);
});
