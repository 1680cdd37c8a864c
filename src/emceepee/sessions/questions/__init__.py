"""Questions of backends (elicitation and sampling) that wait for an answer.

May import the modules of `sessions`. Read `questions.py` first. `question_origins.py` knows which calls may have
asked, and `native_elicitation.py` asks callers that support elicitation.
"""
