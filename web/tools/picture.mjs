// Draws docs/images/page.png anew, the first view of build/web as the README shows it: node web/tools/picture.mjs
import { join } from "node:path";
import { Lab, missing, root } from "../tests/support.mjs";

if (missing) throw new Error(missing);
const lab = await Lab.open({ context: { viewport: { width: 1440, height: 1340 } } });
const page = await lab.page("");
await page.screenshot({ path: join(root, "docs", "images", "page.png") });
await lab.close();
