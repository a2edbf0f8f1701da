framework_test(torch_categories test_categories.py TIMEOUT 900)
