declare module "*.css" {
    const text: string; // minified, by tools/css_text.mjs
    export default text;
}
