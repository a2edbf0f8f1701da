framework_test(torch_sleep_modes test_sleep_modes.py TIMEOUT 300)
