/** §1: routes, names, queries, numbers, headers of all answers. */
import { connect } from "node:http2";
import { equal, isTrue, matches, refused, status } from "../expect.ts";
import type { CaseList } from "../suite.ts";

const TEXT = { "content-type": "text/plain" };

export const commonCases: CaseList = [
  {
    sections: ["1.1"],
    name: "the root is no stream: PUT and POST 400, HEAD and DELETE 404 without body",
    async run({ pico }) {
      refused(await pico.put("/"), 400, "bad_request", "PUT");
      refused(await pico.post("/", "x"), 400, "bad_request", "POST");
      for (const method of ["HEAD", "DELETE"]) {
        const answer = await pico.request(method, "/");
        status(answer, 404, method);
        equal(answer.text, "", `${method} body`);
      }
    },
  },
  {
    sections: ["1.1", "2"],
    name: "other methods are 405 with Allow, also on missing streams and on the root",
    async run({ pico, newName }) {
      for (const [method, target] of [
        ["PATCH", newName()],
        ["PURGE", newName()],
        ["PROPFIND", "/"],
      ] as const) {
        const answer = await pico.rawRequest(method, target);
        equal(answer.status, 405, `${method} status`);
        matches(answer.head, /\r\nallow: .*\bGET\b/i, "Allow");
        equal((JSON.parse(answer.body) as { error: string }).error, "method_not_allowed", "code");
      }
    },
  },
  {
    sections: ["1.1"],
    name: "HTTP/2 with prior knowledge is served on the same port",
    async run({ pico, newName }) {
      const name = newName();
      await pico.fill(name, ["over h2"]);
      const session = connect(pico.url);
      try {
        const body = await new Promise<string>((resolve, reject) => {
          const stream = session.request({ ":path": `${name}?format=raw` });
          let text = "";
          let code = 0;
          stream.on("response", (headers) => {
            code = Number(headers[":status"]);
          });
          stream.on("data", (chunk: Buffer) => {
            text += chunk.toString("utf8");
          });
          stream.on("end", () => resolve(`${code} ${text}`));
          stream.on("error", reject);
          session.on("error", reject);
          stream.end();
        });
        equal(body, "200 over h2", "answer");
      } finally {
        session.close();
      }
    },
  },
  {
    sections: ["1.2"],
    name: "names are not folded: a, a/, a//b and A are four streams",
    async run({ pico, newName }) {
      const base = newName();
      for (const suffix of ["/a", "/a/", "/a//b", "/A"]) {
        equal((await pico.rawRequest("PUT", base + suffix, TEXT)).status, 201, `PUT ${suffix}`);
        equal((await pico.rawRequest("POST", base + suffix, {}, suffix)).status, 200, `POST ${suffix}`);
      }
      for (const suffix of ["/a", "/a/", "/a//b", "/A"]) {
        equal((await pico.rawRequest("GET", `${base}${suffix}?format=raw`)).body, suffix, `GET ${suffix}`);
      }
    },
  },
  {
    sections: ["1.2"],
    name: "a name is the path decoded once: %61 is a, %2F is a slash, %2561 stays %61",
    async run({ pico, newName }) {
      const base = newName();
      equal((await pico.rawRequest("PUT", `${base}/%61%2Fb`, TEXT)).status, 201, "PUT");
      equal((await pico.rawRequest("HEAD", `${base}/a/b`)).status, 200, "HEAD of the decoded name");
      equal((await pico.rawRequest("PUT", `${base}/%2561`, TEXT)).status, 201, "PUT of an encoded percent sign");
      equal((await pico.rawRequest("HEAD", `${base}/%61`)).status, 404, "decoded only once");
      const list = (await pico.get(`/?prefix=${encodeURIComponent(base)}`)).json() as { items: { name: string }[] };
      equal(
        list.items.map(({ name }) => name),
        [`${base}/%61`, `${base}/a/b`],
        "listed names",
      );
    },
  },
  {
    sections: ["1.2", "3.2"],
    name: "Location has each segment percent-encoded",
    async run({ pico, newName }) {
      const base = newName();
      const answer = await pico.rawRequest("PUT", `${base}/a%20b/%C3%A9%3F`, TEXT);
      matches(answer.head, new RegExp(`\\r\\nlocation: ${base}/a%20b/%C3%A9%3F\\r?`, "i"), "Location");
      // "//host/path" would be an address of another server.
      const slashes = await pico.rawRequest("PUT", `/${base}`, TEXT);
      matches(slashes.head, new RegExp(`\\r\\nlocation: /%2F${base.slice(1)}\\r?`, "i"), "Location of a name with two slashes in front");
    },
  },
  {
    sections: ["1.2"],
    name: "malformed escapes, invalid UTF-8, control characters and encoded dot segments are 400",
    async run({ pico, newName }) {
      const base = newName();
      for (const path of ["/%", "/%zz", "/%C3", "/%ff%fe", "/%00", "/%0d%0a", "/%7f", "/a%2F..%2Fb", "/a%2F.", "/x#y"]) {
        const answer = await pico.rawRequest("PUT", base + path, TEXT);
        equal(answer.status, 400, `PUT ${path}`);
        equal((JSON.parse(answer.body) as { error: string }).error, "bad_request", "code");
      }
    },
  },
  {
    sections: ["1.2"],
    name: "encoded slashes and dots never reach another stream",
    async run({ pico, newName }) {
      const base = newName();
      await pico.fill(`${base}/tenant/secret`, ["secret"]);
      for (const path of [
        "/other/%2e%2e%2ftenant/secret",
        "/other%2f%2e%2e%2ftenant%2fsecret",
        "/other/..%2ftenant/secret",
        "/%252e%252e/tenant/secret",
      ]) {
        const answer = await pico.rawRequest("GET", `${base}${path}?format=raw`);
        isTrue(!answer.body.includes("secret") || answer.status >= 400, `${path} gave ${answer.status} ${answer.body}`);
      }
    },
  },
  {
    sections: ["1.2"],
    name: "names have 1,024 bytes at most; the refusal names the limit",
    async run({ pico, newName }) {
      const base = `${newName()}/`;
      status(await pico.put(base + "n".repeat(1024 - base.length), TEXT), 201, "1,024 bytes");
      const answer = await pico.put(base + "n".repeat(1025 - base.length), TEXT);
      refused(answer, 400, "bad_request", "1,025 bytes");
      matches(answer.text, /1024/, "message");
    },
  },
  {
    sections: ["1.2"],
    name: "reserved names: writes below /_sys are 400, unknown ones read as 404",
    async run({ pico }) {
      refused(await pico.put("/_sys/x", TEXT), 400, "bad_request", "PUT");
      refused(await pico.post("/_sys/x", "x"), 400, "bad_request", "POST");
      status(await pico.delete("/_sys/x"), 400, "DELETE");
      refused(await pico.get("/_sys/no-such"), 404, "not_found", "GET");
      refused(await pico.put("/_streams/x", TEXT), 400, "bad_request", "PUT /_streams");
    },
  },
  {
    sections: ["1.2"],
    name: "reserved paths of features that are not there answer 404 not_found",
    async run({ pico }) {
      for (const path of ["/_schemas/x", "/_streams/x", "/_groups", "/_groups/g/members"]) {
        refused(await pico.get(path), 404, "not_found", path);
      }
      refused(await pico.put("/_schemas/x.json", { "content-type": "application/schema+json" }, "{}"), 404, "not_found", "PUT /_schemas");
    },
  },
  {
    sections: ["1.2"],
    name: "a longer segment that begins like a reserved one is an ordinary name",
    async run({ pico, newName }) {
      const name = `/_system${newName()}`;
      status(await pico.put(name, TEXT), 201, "PUT");
      status(await pico.delete(name), 204, "DELETE");
    },
  },
  {
    sections: ["1.3"],
    name: "the first duplicate wins, unknown parameters are ignored, keys are case-sensitive",
    async run({ pico, newName }) {
      const name = newName();
      await pico.fill(name, ["a", "b", "c"]);
      const records = await pico.records(`${name}?seq=1&seq=2&SEQ=0&foo=bar&&=x`);
      equal(
        records.map(({ seq }) => seq),
        [1, 2],
        "records",
      );
    },
  },
  {
    sections: ["1.3", "1.4"],
    name: "values are percent-decoded: %2B7 is +7, a bare plus is a space",
    async run({ pico, newName }) {
      const name = newName();
      await pico.fill(name, ["a", "b"]);
      equal((await pico.records(`${name}?seq=%2B1`)).length, 1, "records from +1");
      refused(await pico.get(`${name}?seq=+1`), 400, "bad_request", "a space before the number");
      equal((await pico.records(`${name}?seq=%31`)).length, 1, "records from %31");
    },
  },
  {
    sections: ["1.4"],
    name: "strict numbers: no sign, space, leading zero, point, exponent or overflow",
    async run({ pico, newName }) {
      const name = newName();
      await pico.fill(name, ["a"]);
      for (const value of ["-1", "%2B1", "01", "1.0", "1e3", "0x1", "18446744073709551616", "abc", "1%20"]) {
        for (const key of ["count", "bytes"]) refused(await pico.get(`${name}?${key}=${value}`), 400, "bad_request", `${key}=${value}`);
      }
      for (const value of ["-1", "+1", "01", "1.0", "18446744073709551616"]) {
        refused(await pico.post(name, "x", { "pico-match-seq": value }), 400, "bad_request", `Pico-Match-Seq ${value}`);
        refused(await pico.post(name, "", { "pico-trim-seq": value }), 400, "bad_request", `Pico-Trim-Seq ${value}`);
        refused(await pico.put(newName(), { "pico-ttl": value }), 400, "bad_request", `Pico-TTL ${value}`);
      }
      equal((await pico.head(name)).headers.get("pico-next-seq"), "1", "nothing was changed");
    },
  },
  {
    sections: ["1.4"],
    name: "numbers keep their value at 2^53, 2^63 and 2^64-1",
    async run({ pico, newName }) {
      for (const ttl of ["9007199254740993", "9223372036854775807", "18446744073709551615"]) {
        const name = newName();
        status(await pico.put(name, { "pico-ttl": ttl }), 201, ttl);
        equal((await pico.head(name)).headers.get("pico-ttl"), ttl, "TTL on HEAD");
        const list = await pico.get(`/?prefix=${encodeURIComponent(name)}`);
        matches(list.text, new RegExp(`"ttl":${ttl}[,}]`), "TTL in the list");
        status(await pico.put(name, { "pico-ttl": ttl }), 200, "the same TTL again");
      }
    },
  },
  {
    sections: ["1.4"],
    name: "an empty strict number means absent",
    async run({ pico, newName }) {
      const name = newName();
      status(await pico.put(name, { "pico-ttl": "" }), 201, "PUT");
      equal((await pico.head(name)).headers.get("pico-ttl"), null, "TTL");
      await pico.post(name, "a");
      equal((await pico.records(`${name}?count=&bytes=`)).length, 1, "records");
      status(await pico.post(name, "b", { "pico-match-seq": "" }), 200, "empty Pico-Match-Seq");
    },
  },
  {
    sections: ["1.4", "7"],
    name: "positions: leading zeros are fine, negative ones are 0, others are 400",
    async run({ pico, newName }) {
      const name = newName();
      await pico.fill(name, ["a", "b"]);
      equal((await pico.records(`${name}?seq=00000000000000000001`)).length, 1, "leading zeros");
      equal((await pico.records(`${name}?seq=-5`)).length, 2, "negative");
      for (const value of [
        "",
        "abc",
        "1.0",
        "1e3",
        "0x1",
        "9223372036854775808",
        "18446744073709551615",
        "9007199254740993",
        "9223372036854775807",
      ]) {
        refused(await pico.get(`${name}?seq=${value}`), 400, "bad_request", `seq=${value}`);
        if (value !== "") refused(await pico.get(name, { "last-event-id": value }), 400, "bad_request", `Last-Event-ID ${value}`);
      }
    },
  },
  {
    sections: ["1.4"],
    name: "boolean headers are true for true in any letter case, and false otherwise",
    async run({ pico, newName }) {
      for (const [value, isClosed] of [
        ["TRUE", "true"],
        ["True", "true"],
        ["1", null],
        ["yes", null],
        ["", null],
        [" true ", "true"],
      ] as const) {
        const name = newName();
        status(await pico.put(name, { ...TEXT, "pico-closed": value }), 201, `Pico-Closed: ${value}`);
        equal((await pico.head(name)).headers.get("pico-closed"), isClosed, `closed with ${value}`);
      }
    },
  },
  {
    sections: ["1.4", "3.1"],
    name: "instants: UTC or unix milliseconds; other offsets, times before 1970 and other forms are 400",
    async run({ pico, newName }) {
      for (const [given, shown] of [
        ["2100-01-01T00:00:00Z", "2100-01-01T00:00:00Z"],
        ["2100-01-01T00:00:00.5Z", "2100-01-01T00:00:00.500Z"],
        ["4102444800000", "2100-01-01T00:00:00Z"],
        ["4102444800001", "2100-01-01T00:00:00.001Z"],
      ] as const) {
        const name = newName();
        status(await pico.put(name, { "pico-expires-at": given }), 201, given);
        equal((await pico.head(name)).headers.get("pico-expires-at"), shown, `shown for ${given}`);
      }
      for (const value of ["2100-01-01T00:00:00+00:00", "1969-12-31T23:59:59Z", "2100-02-30T00:00:00Z", "tomorrow", "2100-01-01"]) {
        refused(await pico.put(newName(), { "pico-expires-at": value }), 400, "bad_request", value);
      }
    },
  },
  {
    sections: ["1.5"],
    name: "every answer says nosniff and same-origin, errors too",
    async run({ pico, newName }) {
      const name = newName();
      const answers = [
        await pico.put(name, TEXT),
        await pico.post(name, "x"),
        await pico.get(name),
        await pico.head(name),
        await pico.get("/"),
        await pico.get(newName()),
        await pico.request("OPTIONS", name),
        await pico.delete(name),
      ];
      for (const answer of answers) {
        equal(answer.headers.get("x-content-type-options"), "nosniff", "X-Content-Type-Options");
        equal(answer.headers.get("cross-origin-resource-policy"), "same-origin", "Cross-Origin-Resource-Policy");
      }
    },
  },
  {
    sections: ["1.5", "7"],
    name: "only full pages below the tail are cacheable; tail, empty and now answers are no-store",
    async run({ pico, newName }) {
      const name = newName();
      await pico.fill(name, ["a", "b", "c"]);
      matches((await pico.get(`${name}?seq=0&count=2`)).headers.get("cache-control"), /^public, max-age=\d+/, "full page");
      for (const query of ["?seq=0", "?seq=0&count=3", "?seq=3", "?seq=now", "?seq=0&live=long-poll"]) {
        equal((await pico.get(name + query)).headers.get("cache-control"), "no-store", query);
      }
      const byHeader = await pico.get(`${name}?count=1`, { "last-event-id": "1" });
      equal(byHeader.headers.get("cache-control"), "no-store", "a position in a header, which caches do not look at");
    },
  },
  {
    sections: ["1.6"],
    name: "OPTIONS is 204 with the protocol's headers, on any path",
    async run({ pico, newName }) {
      for (const target of ["/", newName(), "/_sys/x"]) {
        const answer = await pico.request("OPTIONS", target);
        status(answer, 204, target);
        equal(answer.headers.get("cache-control"), "no-store", "Cache-Control");
        equal(answer.headers.get("access-control-allow-methods"), "GET, PUT, POST, DELETE, HEAD, OPTIONS", "methods");
        for (const name of ["Pico-Match-Seq", "Pico-Trim-Seq", "Pico-TTL", "Pico-Producer-Seq", "If-None-Match", "content-type"]) {
          matches(answer.headers.get("access-control-allow-headers"), new RegExp(`\\b${name}\\b`, "i"), "allowed headers");
        }
        matches(answer.headers.get("access-control-expose-headers"), /Pico-Next-Seq.*Pico-Received-Seq.*etag/i, "exposed headers");
        equal(answer.headers.get("access-control-allow-origin"), null, "no origin asked, none allowed");
      }
    },
  },
  {
    sections: ["1.6"],
    name: "a page of a loopback origin may read and write; the answer names that origin",
    async run({ pico, newName }) {
      const name = newName();
      const origin = "http://localhost:3000";
      const created = await pico.put(name, { ...TEXT, origin, "sec-fetch-site": "same-site" });
      status(created, 201);
      equal(created.headers.get("access-control-allow-origin"), origin, "Access-Control-Allow-Origin");
      matches(created.headers.get("vary"), /Origin/i, "Vary");
      equal((await pico.get(newName(), { origin })).headers.get("access-control-allow-origin"), origin, "on an error too");
    },
  },
  {
    sections: ["1.6"],
    name: "a foreign page gets 403 on every method but OPTIONS, no allowed origin, and changes nothing",
    async run({ pico, newName }) {
      const name = newName();
      for (const origin of ["https://evil.example", "null", "http://localhost.evil.example"]) {
        refused(await pico.put(name, { ...TEXT, origin }), 403, "permission_denied", `PUT from ${origin}`);
        const answer = await pico.get(name, { origin });
        status(answer, 403, `GET from ${origin}`);
        equal(answer.headers.get("access-control-allow-origin"), null, "Access-Control-Allow-Origin");
        const preflight = await pico.request("OPTIONS", name, { origin });
        status(preflight, 204, "OPTIONS");
        equal(preflight.headers.get("access-control-allow-origin"), null, "of a preflight");
      }
      status(await pico.head(name), 404, "nothing was created");
    },
  },
  {
    sections: ["1.6"],
    name: "a page that names a foreign host is refused whatever its origin says",
    async run({ pico, newName }) {
      const name = newName();
      for (const headers of [
        { host: "evil.example", origin: "http://evil.example" },
        { host: "evil.example:4437", "sec-fetch-site": "same-origin" },
        { host: "evil.example", origin: "http://localhost" },
      ]) {
        equal((await pico.rawRequest("PUT", name, headers)).status, 403, JSON.stringify(headers));
      }
      equal((await pico.rawRequest("GET", name, { host: "other.example" })).status, 404, "without a browser's headers nobody is judged");
      const reader = { host: "evil.example:4437", "accept-language": "en" };
      equal((await pico.rawRequest("GET", name, reader)).status, 403, "a page's read of the name that it came from");
      const node = { host: "other.example", "accept-language": "*", "sec-fetch-mode": "cors" };
      equal((await pico.rawRequest("GET", name, node)).status, 404, "what Node's fetch sends");
    },
  },
];
