framework_test(torch_unreported test_unreported.py TIMEOUT 900)
