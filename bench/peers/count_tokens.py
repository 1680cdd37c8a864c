"""Count the tokens of standard input, in an environment of its own that has the vocabulary."""

import sys

import bpe_openai

if __name__ == "__main__":
    sys.stdout.write(str(len(bpe_openai.get_encoding("o200k_base").encode(sys.stdin.read()))))
