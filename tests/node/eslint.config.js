// For the console's page and its unit tests. Run from the root of the checkout: `make page`.

import js from "@eslint/js";

export default [
  js.configs.recommended,
  {
    languageOptions: { ecmaVersion: 2024, sourceType: "module" },
    linterOptions: { reportUnusedDisableDirectives: "error" },
    rules: {
      // tsc knows which names a browser has.
      "no-undef": "off",
      // Text of servers is searched for such characters.
      "no-control-regex": "off",
      eqeqeq: ["error", "always", { null: "ignore" }],
      "no-var": "error",
      "prefer-const": "error",
    },
  },
];
