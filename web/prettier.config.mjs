// The width and indentation of the C++ sources; ./dev format runs it.
export default { printWidth: 110, tabWidth: 4 };
