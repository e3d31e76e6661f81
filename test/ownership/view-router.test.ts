import { expect, test } from "bun:test";
import { formatRegistration, type RegistrationName } from "../../src/lib/registration.ts";
import { ViewRouter } from "../../src/ownership/view-router.ts";
import { nodeName, registerCommand, StateFixture } from "../metadata/state-fixture.ts";

/** A router of node 1 before a state in which node 1 (its last life) and node 2 own a stream each. */
function setUp({ own = [], inUse = [] }: { own?: readonly RegistrationName[]; inUse?: readonly string[] } = {}) {
  const fixture = new StateFixture();
  const past = fixture.register(nodeName(1));
  const other = fixture.register(nodeName(2));
  fixture.create(past.node, past.firstStreamId, "/past");
  fixture.create(other.node, other.firstStreamId, "/other");
  const ownKeys = new Set(own.map(formatRegistration));
  const isOwn = (name: RegistrationName) => ownKeys.has(formatRegistration(name));
  return { fixture, router: new ViewRouter(fixture.state, 1, isOwn, (name) => inUse.includes(name)) };
}

test("a stream of another live node is redirected to its listener of the same protocol", () => {
  const { router } = setUp();
  expect(router.route("/other", "pico")).toEqual({ kind: "redirect", address: "http://127.0.0.1:1" });
  expect(router.route("/other", "durableStreams")).toEqual({ kind: "here" });
});

test("a stream that an earlier life of this node owns is unavailable, not redirected to the address that both share", () => {
  const { router } = setUp();
  expect(router.route("/past", "pico").kind).toBe("unavailable");
});

test("the same once this life has replaced the earlier one, and is not served yet", () => {
  const { fixture, router } = setUp();
  fixture.run(nodeName(1, 2), registerCommand(nodeName(1, 2), 1));
  expect(router.route("/past", "pico").kind).toBe("unavailable");
});

test("a stream is served here when its owner is served here, when it is in use, and when nobody knows it", () => {
  expect(setUp({ own: [nodeName(1)] }).router.route("/past", "pico").kind).toBe("here");
  expect(setUp({ inUse: ["/other"] }).router.route("/other", "pico").kind).toBe("here");
  expect(setUp().router.route("/new", "pico").kind).toBe("here");
});
