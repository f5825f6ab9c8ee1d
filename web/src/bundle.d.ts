// Declares what the bundler puts in: the texts of a language (web/tools/texts.mjs) and minified styles
// (web/tools/css_text.mjs).
declare const texts: typeof import("./texts/en.ts").texts;

declare module "*.css" {
    const text: string;
    export default text;
}
