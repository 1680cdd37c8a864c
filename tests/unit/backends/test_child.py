from emceepee.backends.child import child_environment


def test_a_child_learns_of_our_environment_only_what_it_needs_to_run() -> None:
    ours = {
        "PATH": "/bin",
        "HOME": "/root",
        "LANG": "C",
        "HTTPS_PROXY": "http://p",
        "AWS_SECRET_ACCESS_KEY": "s",
        "X": "y",
    }
    assert child_environment({}, ours) == {"PATH": "/bin", "HOME": "/root", "LANG": "C", "HTTPS_PROXY": "http://p"}


def test_what_a_server_is_given_by_name_comes_on_top() -> None:
    assert child_environment({"TOKEN": "t", "PATH": "/opt"}, {"PATH": "/bin", "HOME": "/root"}) == {
        "PATH": "/opt",
        "HOME": "/root",
        "TOKEN": "t",
    }


def test_our_own_environment_is_not_changed_by_it() -> None:
    ours = {"PATH": "/bin"}
    child_environment({"PATH": "/opt"}, ours)["PATH"] = "/tmp"
    assert ours == {"PATH": "/bin"}
