// Mistakes, names and long lines of the page and its tests. Prettier does the layout.
import { createRequire } from "node:module";

// Node looks for packages beside this file, but they are in tests/browser.
const require = createRequire(new URL("tests/browser/package.json", import.meta.url));
const js = require("@eslint/js");
const { defineConfig } = require("eslint/config");
const globals = require("globals");
const { configs } = require("typescript-eslint");

export default defineConfig(
    js.configs.recommended,
    {
        files: ["**/*.ts"],
        extends: [configs.recommendedTypeChecked, configs.stylisticTypeChecked],
        languageOptions: {
            parserOptions: { project: ["viewer/tsconfig.json", "viewer/test/tsconfig.json"] },
        },
        rules: {
            // Constants are named like other variables. Fields of the page's data keep their names.
            "@typescript-eslint/naming-convention": [
                "error",
                { selector: ["variable", "parameter"], modifiers: ["destructured"], format: null },
                {
                    selector: "variableLike",
                    format: ["camelCase"],
                    custom: { regex: "^k[A-Z]", match: false },
                    leadingUnderscore: "allow",
                },
                { selector: "typeLike", format: ["PascalCase"] },
            ],
            // node:test waits for its tests without an await.
            "@typescript-eslint/no-floating-promises": [
                "error",
                {
                    allowForKnownSafeCalls: [
                        { from: "package", name: "test", package: "node:test" },
                    ],
                },
            ],
        },
    },
    { files: ["**/*.mjs"], languageOptions: { globals: { ...globals.node, ...globals.browser } } },
    {
        linterOptions: { reportUnusedDisableDirectives: "error" },
        rules: {
            curly: ["error", "multi-line", "consistent"],
            eqeqeq: "error",
            // Prettier does not wrap comments.
            "max-len": [
                "error",
                {
                    code: 100,
                    ignoreRegExpLiterals: true,
                    ignoreStrings: true,
                    ignoreTemplateLiterals: true,
                },
            ],
            "no-var": "error",
            "object-shorthand": "error",
            "prefer-const": "error",
        },
    },
);
