/** What `/admin/gc` takes and answers, as schemas. */
import { Type as t } from "@sinclair/typebox";
import { REMOVAL_HOLD_SECONDS_MAX } from "../lib/limits.ts";
import { Count } from "./admin-schemas.ts";

export const GcOrder = t.Union(
  [
    t.Object(
      {
        holdSeconds: t.Integer({
          minimum: 1,
          maximum: REMOVAL_HOLD_SECONDS_MAX,
          description: "Nothing leaves the store for so long from now on, by the time of the database; replaces a hold that stands",
        }),
      },
      { additionalProperties: false },
    ),
    t.Object({ release: t.Literal(true, { description: "Ends the hold" }) }, { additionalProperties: false }),
  ],
  { $id: "GcOrder" },
);

export const GcAnswer = t.Object(
  {
    heldUntilMs: t.Union([Count("In ms since 1970, by the time of the database"), t.Null()], {
      description: "Nothing leaves the store before; null: nothing holds it back",
    }),
  },
  { $id: "Gc" },
);
