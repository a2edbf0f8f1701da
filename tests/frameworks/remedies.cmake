framework_test(torch_remedies test_remedies.py TIMEOUT 900)
