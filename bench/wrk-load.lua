-- The load of the HTTP benchmark, for wrk: one request after the other from a list of paths, prepared
-- before the clock starts so that the generator costs little.
--
--   wrk ... URL -- METHOD PATHS_FILE BODY_BYTES
--
-- PATHS_FILE has a path a line. Prints one line of JSON at the end; latencies are in microseconds.

local requests = {}
local count = 0
local at = 0

function init(args)
  local method, file, body_bytes = args[1], args[2], tonumber(args[3])
  local body = nil
  if body_bytes > 0 then
    wrk.headers["Content-Type"] = "application/octet-stream"
    body = string.rep("x", body_bytes)
  end
  for path in io.lines(file) do
    count = count + 1
    requests[count] = wrk.format(method, path, nil, body)
  end
end

function request()
  at = at % count + 1
  return requests[at]
end

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    '{"requests":%d,"microseconds":%d,"bytes":%d,"refused":%d,"broken":%d,"late":%d,"p50":%d,"p99":%d}\n',
    summary.requests, summary.duration, summary.bytes,
    errors.status, errors.connect + errors.read + errors.write, errors.timeout,
    latency:percentile(50), latency:percentile(99)))
end
