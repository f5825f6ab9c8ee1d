// A browser runs no workers in pages opened from a file: there the doors to the page lead to its one-file form.
if (location.protocol === "file:")
    addEventListener("DOMContentLoaded", () => {
        for (const door of document.querySelectorAll('a[href*="page/index.html"]'))
            door.href = door.href.replace("page/index.html", "fovea.html");
    });
