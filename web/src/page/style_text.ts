// The style of a part of the page that comes when it is asked for, as text within the part's script.
export function adoptStyle(text: string): void {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(text);
    document.adoptedStyleSheets.push(sheet);
}
