framework_test(torch_callbacks test_callbacks.py TIMEOUT 900)
fragtrace_add_python_test(NAME loggers SCRIPT test_loggers.py LABELS frameworks)
