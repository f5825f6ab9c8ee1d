// Put into each bundle by web/tools/texts.mjs.
declare const texts: typeof import("./en.ts").texts;
