/** What the admin listener asks the node. */
import type { ClusterAnswer, ReadyAnswer } from "./admin-schemas.ts";

export interface AdminSource {
  ready(): typeof ReadyAnswer.static;
  cluster(): typeof ClusterAnswer.static;
}
